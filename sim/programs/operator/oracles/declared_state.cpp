#include "sim/programs/operator/oracles/declared_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "api/controller.hpp"
#include "api/token.hpp"
#include "api/well_known.hpp"
#include "core/base64.hpp"
#include "sim/programs/operator/oracles/objects.hpp"
#include "sim/slurm/text.hpp"
#include "slinky/names.hpp"
#include "slinky/worker_names.hpp"

namespace sim {
namespace {

using core::Json;
namespace kinds = kube::resources;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

/// Returns the weight that the NodeSet's newest template sets; nullopt if it sets none.
std::optional<int> weight_of(const Json& nodeset) {
  const std::string conf = text_at(nodeset, {"spec", "extraConf"});
  const std::size_t at = conf.find("Weight=");
  return at == std::string::npos ? std::nullopt : std::optional(number(std::string_view(conf).substr(at + 7), 1));
}

/// Reports whether the EndpointSlice has the pod's name and address. slurmctld finds the pod by this name.
bool has_host(const Json& slice, const Json& pod) {
  return std::ranges::any_of(slice.value("endpoints", Json::array()), [&](const Json& endpoint) {
    return text_at(endpoint, {"hostname"}) == text_at(pod, {"metadata", "name"}) &&
           endpoint["addresses"] == Json::array({text_at(pod, {"status", "podIP"})});
  });
}

}  // namespace

DeclaredState::DeclaredState(core::Loop& loop, KubeApi& api, SlurmSite& site, const HoldOracle& holds,
                             const AbandonedRecords& abandoned)
    : loop_(loop), api_(api), site_(site), holds_(holds), abandoned_(abandoned) {}

/// Returns the hash of the newest template if that template replaces workers of other templates; else "".
std::string DeclaredState::rolled_revision(const Json& nodeset) const {
  const Json* newest = nullptr;
  for (const auto& [key, stored] : api_.store().all(table_name(kube::resources::kControllerRevision))) {
    const Json& revision = stored->body;
    if (key.ns != namespace_of(nodeset) || label(revision, api::kLabelInstance) != name_of(nodeset)) continue;
    if (newest == nullptr || core::get_int(*newest, {"revision"}) < core::get_int(revision, {"revision"})) newest = &revision;
  }
  if (newest == nullptr || annotation(*newest, api::kAnnotationRolls) != "true") return {};
  return label(*newest, api::kLabelRevisionHash);
}

/// Checks that the node has exactly the features of its Kubernetes node. If the worker was updated in place, the node must also
/// have exactly the features of the template.
void DeclaredState::unmet_features(const Json& nodeset, const Json& pod, const Json& host, const SimNode& node,
                                   std::vector<std::string>& out) const {
  const bool in_place = !annotation(pod, api::kAnnotationCreatedRevision).empty() &&
                        label(pod, api::kLabelRevisionHash) == rolled_revision(nodeset);
  std::set<std::string> asked = features_of(nodeset, host), has(node.features.begin(), node.features.end());
  if (!in_place) {
    const auto of_template = [](const std::string& feature) { return !feature.starts_with(api::kFeaturePrefix); };
    std::erase_if(asked, of_template);
    std::erase_if(has, of_template);
  }
  if (has != asked) {
    out.push_back(fmt::format("node {} has the features {}, not {}", node.name, fmt::join(has, ","), fmt::join(asked, ",")));
  }
}

void DeclaredState::unmet_nodeset(const Json& nodeset, std::vector<std::string>& out) const {
  const std::string ns = namespace_of(nodeset), name = name_of(nodeset);
  const kube::Key controller{ns, text_at(nodeset, {"spec", "controllerRef", "name"})};
  const Json* owner = api_.peek(slinky::resources::kController, controller);
  if (owner == nullptr) return;  // nothing can run without a Controller
  const auto site = site_.clusters().find(slinky::controller_object_name(controller.name) + "." + ns);
  const SimSlurm* slurm = site == site_.clusters().end() ? nullptr : site->second->slurm.get();
  const bool scheduled = text_at(nodeset, {"spec", "updateStrategy", "type"}) == "ScheduledUpdate";
  if (!scheduled && slurm != nullptr && slurm->reservations().contains("SlurmOperatorMaint-" + name))
    out.push_back("NodeSet " + name + " has a reservation that it does not want");
  const std::int64_t wanted = wished_workers(api_, nodeset);
  std::int64_t have = 0, left = 0;
  // Nodes that people took out of service stay out until people return them. The NodeSet is still ready, unless all its nodes
  // are out of service.
  int usable = 0, aside = 0, others = 0;
  const bool stopped = condition_true(nodeset, api::kConditionDeletionsStopped);
  const std::string newest = stopped ? "" : rolled_revision(nodeset);
  for (const auto& [key, stored] : api_.store().all("pods")) {
    const Json& pod = stored->body;
    if (key.ns != ns || !is_worker(pod) || label(pod, api::kLabelInstance) != name) continue;
    if (terminating(pod) || ended(pod)) {
      out.push_back("pod " + key.str() + " is on its way out");
      continue;
    }
    ++have;
    const std::string node_name = slurm_node_of(pod);
    const HoldOracle::Hold hold = holds_.on(controller, node_name);
    // A worker of the other scalingMode stays if a user has cordoned the worker or its Slurm node, because its successor would
    // not be cordoned. With scalingMode DaemonSet, such a worker does not count as one of the wanted workers, because there is
    // possibly no Kubernetes node for its successor.
    if (bound_to_hosts(nodeset) != bound_to_host(pod)) {
      if (!pod_cordoned(pod) && !hold.drain && !hold.down) out.push_back("pod " + key.str() + " is of the other scalingMode");
      if (bound_to_hosts(nodeset)) ++left;
    }
    const SimNode* node = slurm == nullptr ? nullptr : slurm->node(node_name);
    if (!condition_true(pod, "Ready")) out.push_back("pod " + key.str() + " is not ready");
    if (node == nullptr) {
      out.push_back("pod " + key.str() + " has no node in Slurm");
      continue;
    }
    // A pod without a slurmd can still be Ready, because a kubelet without connection cannot report that its pod has failed.
    if (!runs_slurmd(*site->second, node_name, pod)) out.push_back("pod " + key.str() + " has no slurmd");
    const Json* host = api_.peek(kinds::kNode, {"", text_at(pod, {"spec", "nodeName"})});
    // Checks the features of every worker's node, also if slurmd started before the features were changed.
    if (host != nullptr) unmet_features(nodeset, pod, *host, *node, out);
    const std::optional<int> weight = weight_of(nodeset);
    if (weight && !newest.empty() && label(pod, api::kLabelRevisionHash) == newest && node->weight != *weight)
      out.push_back(fmt::format("node {} has the weight {}, not {}", node->name, node->weight, *weight));
    const bool cordoned = pod_cordoned(pod) || (host != nullptr && host_goes(*host));
    const bool taken = !node->invalid_reg && (hold.drain || hold.down || cordoned);
    ++(slurm->usable(*node) ? usable : taken ? aside : others);
    if (hold.drain || hold.down) {
      if (hold.drain && !node->drain)
        out.push_back("node " + node_name + " is not drained any more, though its admin did not free it");
      if (node->drain && node->reason == slinky::kDrainedBefore)
        out.push_back("node " + node_name + " does not have the reason of its admin again");
      if (hold.down && !node->down)
        out.push_back("node " + node_name + " is not down any more, though its admin did not free it");
    } else if (cordoned) {
      // A node that Slurm itself set DOWN accepts no jobs either, and keeps Slurm's reason.
      if (!node->drain && !node->down) out.push_back("node " + node_name + " is not drained, though cordoned");
    } else if (!slurm->usable(*node)) {
      out.push_back("node " + node_name + " is not usable: " + shown(*slurm, *node));
    } else if (!newest.empty() && label(pod, api::kLabelRevisionHash) != newest && ordinal_of(pod) >= partition_of(nodeset)) {
      out.push_back("pod " + key.str() + " is of an earlier template");
    }
  }
  const bool as_wanted = wanted <= have && have <= wanted + left;
  if (!as_wanted) out.push_back(fmt::format("NodeSet {}/{} has {} workers of {}", ns, name, have, wanted));
  if (core::get_int(nodeset, {"status", "observedGeneration"}) != core::get_int(nodeset, {"metadata", "generation"})) {
    out.push_back("the status of NodeSet " + key_of(nodeset) + " is of an older generation");
  }
  if (core::get_int(nodeset, {"status", "replicas"}) != have)
    out.push_back("status.replicas of NodeSet " + key_of(nodeset) + " is wrong");
  const bool ready = others == 0 && (usable > 0 || aside == 0);
  if (condition_true(nodeset, api::kConditionReady) != ready && as_wanted) {
    out.push_back(fmt::format("Ready of NodeSet {} is wrong: {} usable, {} taken from work, {} otherwise not", key_of(nodeset),
                              usable, aside, others));
  }
}

void DeclaredState::unmet_slurm(const SlurmSite::Cluster& cluster, std::vector<std::string>& out) const {
  const Json* owner = api_.peek(slinky::resources::kController, cluster.controller);
  if (owner == nullptr) return;
  if (!cluster.slurm->up()) {
    out.push_back("slurmctld of " + cluster.controller.str() + " is down");
    return;
  }
  for (const auto& [name, node] : cluster.slurm->nodes()) {
    const std::string& node_name = name;
    const auto& pods = api_.store().all("pods");
    const bool has_pod = std::any_of(pods.begin(), pods.end(), [&](const auto& entry) {
      const Json& pod = entry.second->body;
      return is_worker(pod) && kube::Key{entry.first.ns, label(pod, api::kLabelCluster)} == cluster.controller &&
             slurm_node_of(pod) == node_name;
    });
    // A new Controller can get the state of a deleted cluster, and slurmctld can return after a NodeSet was deleted. The
    // operator recognizes the record of a worker only by its comment, by the operator's reason, or by a feature with the name
    // of a NodeSet whose workers have ordinals. Any other record could belong to a host of the site.
    const bool nameless = node.down && node.comment.empty() && !given_by_operator(node.reason) &&
                          std::ranges::none_of(node.features, [&](const std::string& feature) {
                            return slinky::ordinal_of(name, feature + "-") &&
                                   api_.peek(slinky::resources::kNodeSet, {cluster.controller.ns, feature}) != nullptr;
                          });
    // If Slurm refuses a slurmd, the operator never writes the record's comment, so it cannot recognize this record either.
    if (nameless && (node.invalid_reg || abandoned_.contain(cluster.controller, name))) continue;
    // An administrator's hold outlives the worker. If Slurm refuses the slurmd, only the reason decides: Slurm overwrites an
    // administrator's reason, and before 26.05 a leftover reason can look like an administrator's.
    const HoldOracle::Hold hold = holds_.on(cluster.controller, name);
    const bool others =
        node.invalid_reg ? !given_by_operator(node.reason) && !tells_lack(node.reason) : hold.drain || hold.down;
    if (others) continue;
    if (!has_pod) out.push_back("node " + name + " is a record without a pod: " + shown(*cluster.slurm, node));
  }
}

void DeclaredState::unmet_controller(const kube::Key& key, const Json& object, std::vector<std::string>& out) const {
  if (!condition_true(object, api::kConditionReady)) out.push_back("Controller " + key.str() + " is not Ready");
  for (const char* type : {"ConfigAccepted", "SecretsReady"}) {
    if (!condition_true(object, type)) out.push_back(fmt::format("{} of Controller {} is not True", type, key.str()));
  }
  if (condition_true(object, api::kConditionDegraded)) out.push_back("Controller " + key.str() + " is Degraded");
  const std::string keyring = slinky::keyring_name(key.name);
  const Json* copy = api_.peek(kinds::kSecret, {key.ns, keyring});
  const bool rotates = copy != nullptr && !annotation(*copy, api::kAnnotationKeyRotation).empty();
  if (rotates) out.push_back("the key of Controller " + key.str() + " rotates still");
  const Json* map = api_.peek(kinds::kConfigMap, {key.ns, slinky::config_map_name(key.name)});
  const SlurmSite::Cluster* cluster = site_.find(key);
  if (cluster == nullptr || !cluster->slurm->up()) return;
  const std::string conf = map == nullptr ? "" : text_at(*map, {"data", "slurm.conf"});
  if (cluster->slurm->configuration() != conf) {
    out.push_back("slurmctld of " + key.str() + " runs with another configuration than the ConfigMap's");
  }
  // No user requests that a partition is withheld, so no partition may be withheld at the end.
  for (const auto& [name, partition] : cluster->slurm->partitions()) {
    if (partition.state == "DRAIN") out.push_back("partition " + name + " is withheld still");
  }
  unmet_inputs(*cluster, object, out);
}

std::optional<std::string> DeclaredState::secret_value(const kube::Key& key, const std::string& field) const {
  const Json* secret = api_.peek(kinds::kSecret, key);
  if (secret == nullptr) return {};
  const auto bytes = core::base64_decode(text_at(*secret, {"data", field}));
  return bytes ? std::optional(*bytes) : std::nullopt;
}

/// Checks that slurmctld runs with the current keys, files and scripts that the Controller names.
void DeclaredState::unmet_inputs(const SlurmSite::Cluster& cluster, const Json& object, std::vector<std::string>& out) const {
  const std::string ns = namespace_of(object);
  const auto controller = api::from_json<api::Controller>(object);
  if (!controller) return;
  const api::ControllerSpec& spec = controller->spec;
  const slinky::KeyRef jwt = slinky::jwt_key_ref(spec, name_of(object));
  if (secret_value({ns, jwt.secret}, jwt.key) != cluster.jwt_key) {
    out.push_back("slurmctld runs with another key than Secret " + jwt.secret + " has");
  }
  // Compares the files as slurmctld has read them. Scripts are read whenever they run, so their present files are compared.
  const auto there = cluster.pod->files(std::string(slinky::kAppController), "/etc/slurm");
  const auto check = [&](const std::map<std::string, std::string>& files, const std::string& map, const std::string& key,
                         const std::string& path) {
    const Json* source = api_.peek(kinds::kConfigMap, {ns, map});
    const auto file = files.find(path);
    const bool same = source != nullptr && file != files.end() && file->second == text_at(*source, {"data", key});
    if (!same) out.push_back(fmt::format("slurmctld has another {} than ConfigMap {}", path, map));
  };
  const auto check_all = [&](const std::map<std::string, std::string>& files, const api::LocalObjectReference& ref,
                             std::set<std::string>& names) {
    const Json* map = api_.peek(kinds::kConfigMap, {ns, ref.name});
    if (map == nullptr) return out.push_back("ConfigMap " + ref.name + " does not exist");
    for (const auto& [name, text] : (*map)["data"].items()) {
      names.insert(name);
      check(files, ref.name, name, name);
    }
  };
  std::set<std::string> ignored;
  for (const api::LocalObjectReference& ref : spec.config_file_refs) check_all(cluster.etc, ref, ignored);
  if (spec.jwks_key_ref) check(cluster.etc, spec.jwks_key_ref->name, spec.jwks_key_ref->key, "jwks.json");
  struct Scripts {
    const char* key;
    const char* directory;
    const std::vector<api::LocalObjectReference>& refs;
    const std::map<std::string, std::string>& files;
  };
  for (const Scripts& scripts : {Scripts{"Prolog", "", spec.prolog_script_refs, cluster.etc},
                                 {"Epilog", "", spec.epilog_script_refs, cluster.etc},
                                 {"PrologSlurmctld", "/etc/slurm/", spec.prolog_slurmctld_script_refs, there},
                                 {"EpilogSlurmctld", "/etc/slurm/", spec.epilog_slurmctld_script_refs, there}}) {
    std::set<std::string> names;
    for (const api::LocalObjectReference& ref : scripts.refs) check_all(scripts.files, ref, names);
    std::string wanted, loaded;
    for (const std::string& name : names) wanted += fmt::format("{}={}{}\n", scripts.key, scripts.directory, name);
    for (const std::string& line : lines_of(cluster.slurm->configuration())) {
      if (line.starts_with(std::string(scripts.key) + "=")) loaded += line + "\n";
    }
    if (loaded != wanted) out.push_back(fmt::format("slurmctld has \"{}\", and ConfigMaps say \"{}\"", loaded, wanted));
  }
}

void DeclaredState::unmet_token(const Json& object, std::vector<std::string>& out) const {
  const std::string ns = namespace_of(object), who = "Token " + key_of(object);
  const auto token = api::from_json<api::Token>(object);
  if (!token || token->spec.jwt_key() == nullptr) return out.push_back(who + " cannot be read");
  const api::TokenSpec& spec = token->spec;
  if (token->status.observed_generation != core::get_int(object, {"metadata", "generation"})) {
    out.push_back("the status of " + who + " is of an older generation");
  }
  const api::SecretKeySelector target = api::token_secret(spec, name_of(object));
  for (const auto& [at, secret] : api_.store().all(table_name(kinds::kSecret))) {
    const bool its = owner_uid(secret->body, "Token") == text_at(object, {"metadata", "uid"});
    if (its && at.name != target.name) out.push_back(fmt::format("Secret {} is left of {}", at.str(), who));
  }
  const auto key = secret_value({ns, spec.jwt_key()->name}, spec.jwt_key()->key);
  const auto text = secret_value({ns, target.name}, target.key);
  if (!key || !text) return out.push_back(who + (key ? " has no token" : " has no key to be signed with"));
  const auto claims = verify_token(*text, *key);
  if (!claims) return out.push_back("the token of " + who + " is not signed by its key");
  const core::Duration issued{core::get_int(*claims, {"iat"}) * 1000}, expires{core::get_int(*claims, {"exp"}) * 1000};
  if (text_at(*claims, {"sun"}) != spec.username) out.push_back("the token of " + who + " is another user's");
  if (expires - issued != spec.lifetime.value_or(api::kDefaultTokenLifetime)) {
    out.push_back("the token of " + who + " has another lifetime");
  }
  const Json& secret = *api_.peek(kinds::kSecret, {ns, target.name});
  if (core::get_bool(secret, {"immutable"}) == spec.refresh) {
    out.push_back(fmt::format("the Secret of {} {} change", who, spec.refresh ? "cannot" : "can"));
  }
  // Close to the expiry, the status is allowed to report the token as valid or as expired, because the status counts the
  // lifetime either from the token's request or from its signature.
  constexpr core::Duration kMoment{10000};
  const core::Duration left = expires - loop_.clock().wall().since_epoch;
  if (spec.refresh && left <= core::Duration{0}) out.push_back("the token of " + who + " has expired");
  if (!spec.refresh && left < kMoment && left > -kMoment) return;
  const bool good = spec.refresh || left > core::Duration{0};
  if (condition_true(object, api::kConditionReady) != good || condition_true(object, api::kConditionDegraded) == good) {
    out.push_back(fmt::format("Ready or Degraded of {} is wrong: its token is {}", who, good ? "good" : "not"));
  }
}

void DeclaredState::unmet_loginset(const kube::Key& key, const Json& object, std::vector<std::string>& out) const {
  const std::string who = "LoginSet " + key.str();
  if (api_.peek(slinky::resources::kController, {key.ns, text_at(object, {"spec", "controllerRef", "name"})}) == nullptr)
    return;
  if (!condition_true(object, api::kConditionReady)) out.push_back(who + " is not Ready");
  if (condition_true(object, api::kConditionDegraded)) out.push_back(who + " is Degraded");
  const auto wanted = core::get_int(object, {"spec", "replicas"});
  std::int64_t running = 0;
  const Json* config = api_.peek(kinds::kConfigMap, {key.ns, slinky::ssh_config_name(key.name)});
  if (config == nullptr) return out.push_back(who + " has no sshd_config");
  const Json* hosts = api_.peek(kinds::kEndpointSlice, {key.ns, slinky::login_hosts_name(key.name)});
  const std::string keys = text_at(object, {"spec", "rootSshAuthorizedKeys"});
  if (text_at(*config, {"data", "authorized_keys"}).find(keys) == std::string::npos)
    out.push_back("the authorized keys of " + who + " are not those of its spec");
  const std::string lines = text_at(object, {"spec", "extraSshdConfig"});
  if (text_at(*config, {"data", "sshd_config"}).find(lines) == std::string::npos)
    out.push_back("the sshd_config of " + who + " is not that of its spec");
  for (const auto& [pod, stored] : api_.store().all("pods")) {
    const bool its = pod.ns == key.ns && label(stored->body, api::kLabelName) == slinky::kAppLogin &&
                     label(stored->body, api::kLabelInstance) == key.name;
    if (!its || text_at(stored->body, {"status", "phase"}) != "Running") continue;
    if (hosts == nullptr || !has_host(*hosts, stored->body)) out.push_back("DNS does not know login pod " + pod.str());
    if (!terminating(stored->body)) ++running;
  }
  if (running != wanted) out.push_back(fmt::format("{} has {} pods, and wants {}", who, running, wanted));
  if (core::get_int(object, {"status", "replicas"}) != wanted || core::get_int(object, {"status", "readyReplicas"}) != wanted)
    out.push_back("the status of " + who + " tells other numbers of pods");
}

std::vector<std::string> DeclaredState::unmet() const {
  std::vector<std::string> out;
  const auto of_kind = [&](const kube::Resource& resource, const auto& check) {
    for (const auto& [key, stored] : api_.store().all(table_name(resource))) {
      if (!acts_in(namespaces_, key.ns)) continue;
      if (terminating(stored->body)) {
        out.push_back(resource.kind + " " + key.str() + " is still being deleted");
        continue;
      }
      check(key, stored->body);
    }
  };
  of_kind(slinky::resources::kController,
          [&](const kube::Key& key, const Json& object) { unmet_controller(key, object, out); });
  of_kind(slinky::resources::kRestApi, [&](const kube::Key& key, const Json& object) {
    const kube::Key controller{key.ns, text_at(object, {"spec", "controllerRef", "name"})};
    if (api_.peek(slinky::resources::kController, controller) == nullptr) return;
    if (!condition_true(object, api::kConditionReady)) out.push_back("RestApi " + key.str() + " is not Ready");
    if (condition_true(object, api::kConditionDegraded)) out.push_back("RestApi " + key.str() + " is Degraded");
  });
  of_kind(slinky::resources::kNodeSet, [&](const kube::Key& key, const Json& object) {
    unmet_nodeset(object, out);
    (void)key;
  });
  of_kind(slinky::resources::kLoginSet, [&](const kube::Key& key, const Json& object) { unmet_loginset(key, object, out); });
  of_kind(slinky::resources::kToken, [&](const kube::Key& key, const Json& object) {
    unmet_token(object, out);
    (void)key;
  });
  for (const auto& [host, cluster] : site_.clusters()) unmet_slurm(*cluster, out);
  // If a NodeSet was deleted without its workers, these workers still exist. slurm.conf no longer describes that NodeSet.
  for (const auto& [key, stored] : api_.store().all("pods")) {
    const Json& pod = stored->body;
    if (!acts_in(namespaces_, key.ns) || !is_worker(pod) || !terminating(pod)) continue;
    if (api_.peek(slinky::resources::kNodeSet, {key.ns, label(pod, api::kLabelInstance)}) == nullptr)
      out.push_back("pod " + key.str() + " is on its way out");
  }
  // Orphans: children whose owner is deleted.
  for (const std::string& table : api_.store().tables()) {
    for (const auto& [key, stored] : api_.store().all(table)) {
      const Json* owners = core::find(stored->body, {"metadata", "ownerReferences"});
      if (owners == nullptr) continue;
      for (const Json& owner : *owners) {
        const std::string kind = text_at(owner, {"kind"});
        for (const kube::Resource* resource :
             {&slinky::resources::kController, &slinky::resources::kRestApi, &slinky::resources::kNodeSet,
              &slinky::resources::kLoginSet, &slinky::resources::kToken}) {
          if (resource->kind != kind) continue;
          const Json* object = api_.peek(*resource, {key.ns, text_at(owner, {"name"})});
          if (object == nullptr || text_at(*object, {"metadata", "uid"}) != text_at(owner, {"uid"})) {
            out.push_back(table + " " + key.str() + " is an orphan of " + kind + " " + text_at(owner, {"name"}));
          }
        }
      }
    }
  }
  return out;
}

}  // namespace sim
