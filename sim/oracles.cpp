#include "sim/oracles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "api/well_known.hpp"
#include "core/base64.hpp"
#include "operator/common/names.hpp"
#include "slurm/acts.hpp"
#include "slurm/conf/loaded.hpp"

namespace sim {
namespace {

using core::Json;
namespace kinds = kube::resources;

constexpr std::size_t kNotes = 4000;

std::string text_at(const Json& object, std::initializer_list<std::string_view> path) {
  return core::get_string(object, path);
}
std::string label(const Json& object, std::string_view name) {
  return text_at(object, {"metadata", "labels", name});
}
std::string annotation(const Json& object, std::string_view name) {
  return text_at(object, {"metadata", "annotations", name});
}
bool terminating(const Json& object) {
  return core::find(object, {"metadata", "deletionTimestamp"}) != nullptr;
}
std::string name_of(const Json& object) {
  return text_at(object, {"metadata", "name"});
}
std::string namespace_of(const Json& object) {
  return text_at(object, {"metadata", "namespace"});
}
std::string key_of(const Json& object) {
  return namespace_of(object) + "/" + name_of(object);
}

bool is_worker(const Json& pod) {
  return label(pod, api::kLabelName) == op::kAppWorker && !label(pod, api::kLabelCluster).empty();
}

bool condition_true(const Json& object, std::string_view type) {
  const Json* conditions = core::find(object, {"status", "conditions"});
  if (conditions == nullptr) return false;
  return std::any_of(conditions->begin(), conditions->end(),
                     [&](const Json& c) { return text_at(c, {"type"}) == type && text_at(c, {"status"}) == "True"; });
}

bool ended(const Json& pod) {
  const std::string phase = text_at(pod, {"status", "phase"});
  return phase == "Failed" || phase == "Succeeded";
}

/// Without a node: what a kubelet has not reported yet proves nothing.
bool never_started(const Json& pod) {
  return text_at(pod, {"spec", "nodeName"}).empty();
}

std::string shown(const SimSlurm& slurm, const SimNode& node) {
  std::string out;
  for (const std::string& word : slurm.state_words(node)) out += word + " ";
  out += "(" + node.reason + ")";
  if (node.comment.empty()) out += ", no comment";
  if (const auto jobs = slurm.jobs_on(node.name); !jobs.empty())
    out += fmt::format(", job {} {}", jobs.front()->id, to_string(jobs.front()->state));
  return out;
}

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

}  // namespace

Oracles::Oracles(core::Loop& loop, KubeApi& api, SlurmSite& site) : loop_(loop), api_(api), site_(site) {
  watch_admission();
  watch_store();
  site_.on_cluster = [this](SlurmSite::Cluster& cluster) { watch_cluster(cluster); };
}

void Oracles::violation(std::string text) {
  note("VIOLATION " + text);
  violations_.push_back(std::move(text));
}

void Oracles::note(std::string text) {
  notes_.push_back(core::format_rfc3339_micro(loop_.clock().wall()).substr(11, 12) + " " + std::move(text));
  if (notes_.size() > kNotes) notes_.pop_front();
}

// --- Kubernetes -------------------------------------------------------------------------------------------------------

void Oracles::watch_admission() {
  api_.add_admission([this](const AdmissionRequest& request) -> std::optional<Refusal> {
    if (request.operation == "DELETE" && request.resource == kinds::kPod && request.before != nullptr &&
        is_worker(*request.before) && request.user == kOperatorAgent) {
      worker_deletion(*request.before);
    }
    return {};
  });
}

/// Judged by Slurm itself, at the moment of the call.
void Oracles::worker_deletion(const Json& pod) {
  if (terminating(pod)) return;
  const kube::Key controller{namespace_of(pod), label(pod, api::kLabelCluster)};
  const SlurmSite::Cluster* cluster = site_.find(controller);
  if (cluster == nullptr) return;
  const std::string node = slurm_node_of(pod);
  const std::vector<const SimJob*> jobs = cluster->slurm->jobs_on(node);
  // Who runs slurmd is the model's to say: what a kubelet has reported may be old.
  const auto slurmd = cluster->slurmds.find(node);
  const bool runs = slurmd != cluster->slurmds.end() && slurmd->second == text_at(pod, {"metadata", "uid"});
  if (jobs.empty() || (ended(pod) && !runs)) return;
  // Jobs of an earlier pod of that name are not this one's.
  if (never_started(pod)) return;
  const Json* owner = api_.peek(op::resources::kController, controller);
  const bool cluster_ends = owner == nullptr || (terminating(*owner) && text_at(*owner, {"spec", "deletionPolicy"}) != "Drain");
  if (cluster_ends) return;
  violation(fmt::format("worker {} was deleted while job {} ({}) was on {}, its slurmd {}", key_of(pod), jobs.front()->id,
                        to_string(jobs.front()->state), node, runs ? "running" : "not running"));
}

void Oracles::watch_store() {
  api_.store().listen([this](const std::string& table, const ChangePtr& change) {
    if (change->type == Change::Type::kDeleted) {
      if (table != "leases.coordination.k8s.io") note(fmt::format("{} {} gone", table, change->key.str()));
      if (table == table_name(op::resources::kController)) abandon_records(change->key);
      return;
    }
    const Json& body = change->object->body;
    if (table == "secrets") learn_secret(body);
    if (table == "pods" && is_worker(body))
      abandoned_.erase({{change->key.ns, label(body, api::kLabelCluster)}, slurm_node_of(body)});
    if (const Json* generation = core::find(body, {"status", "observedGeneration"})) {
      const std::int64_t now = generation->get<std::int64_t>();
      std::int64_t& before = observed_[text_at(body, {"metadata", "uid"})];
      const bool ours = table.ends_with(std::string(".") + std::string(api::kGroup));
      if (ours && now < before)
        violation(fmt::format("observedGeneration of {} {} went from {} to {}", table, change->key.str(), before, now));
      before = now;
    }
  });
}

void Oracles::abandon_records(const kube::Key& controller) {
  const SlurmSite::Cluster* cluster = site_.find(controller);
  if (cluster == nullptr) return;
  for (const auto& [name, node] : cluster->slurm->nodes()) abandoned_.insert({controller, name});
}

void Oracles::learn_secret(const Json& secret) {
  const Json* data = core::find(secret, {"data"});
  if (data == nullptr || !data->is_object()) return;
  for (const auto& [key, value] : data->items()) {
    const std::string text = value.get<std::string>();
    if (text.size() < 16) continue;
    secrets_.insert(text);
    if (const auto bytes = core::base64_decode(text)) {
      secrets_.insert(*bytes);
      secrets_.insert(hex(*bytes));
    }
  }
}

void Oracles::search_secrets(std::string_view text, std::string_view where) {
  for (const std::string& secret : secrets_) {
    if (text.find(secret) != std::string_view::npos) {
      violation(fmt::format("a secret shows in {}", where));
      return;
    }
  }
}

void Oracles::request(const net::HttpRequest& request, bool to_slurm, const std::string& identity) {
  if (to_slurm) {
    const auto token = request.headers.find("x-slurm-user-token");
    if (token != request.headers.end() && token->second.size() > 16) secrets_.insert(token->second);
    if (const std::size_t at = request.target.rfind("/node/"); request.method == "GET" && at != std::string::npos)
      asked_[request.target.substr(at + 6)] = loop_.clock().mono();
    if (request.method != "GET" || request.target.find("/reconfigure") != std::string::npos) {
      ++writes_;
      note("slurm " + request.method + " " + request.target + " " + request.body);
      search_secrets(request.body, "a request to Slurm");
      if (!identity.empty()) fenced_write(request, identity);
    }
    return;
  }
  if (request.method == "GET") return;
  if (request.target.find("/leases") != std::string::npos) return;
  ++writes_;
  const bool secret = request.target.find("/secrets") != std::string::npos;
  note("kube " + request.method + " " + request.target + " " + (secret ? "(secret)" : request.body.substr(0, 600)));
  search_secrets(request.target, "a request's path");
  if (!secret) search_secrets(request.body, "a request to " + request.target);
  if (request.method == "DELETE") {
    const auto body = core::parse_json(request.body.empty() ? "{}" : request.body);
    const std::string uid = body ? core::get_string(*body, {"preconditions", "uid"}) : "";
    if (uid.empty()) violation("a deletion without the uid of what is meant: " + request.target);
  }
}

void Oracles::fenced_write(const net::HttpRequest& request, const std::string& identity) {
  const Json* lease = api_.peek(kinds::kLease, kLeaseKey);
  const std::string holder = lease == nullptr ? "" : text_at(*lease, {"spec", "holderIdentity"});
  if (holder == identity) return;
  violation(fmt::format("{} was sent to Slurm by {} while \"{}\" held the Lease", request.method + " " + request.target,
                        identity, holder));
}

void Oracles::log_line(std::string_view line) {
  search_secrets(line, "a log line: " + std::string(line.substr(0, 80)));
}

void OracleLogger::log(core::Level level, std::string_view message, std::vector<core::Field> fields) {
  const std::string line = core::format_log_line(clock_.wall(), level, message, fields);
  oracles_.log_line(line);
  if (level == core::Level::kDebug) return;
  oracles_.note(who_ + " " + line);
  if (print_) std::printf("%s %s\n", who_.c_str(), line.c_str());
  // A plan that throws is a bug wherever it happens.
  if (message.find("this is a bug") != std::string_view::npos) oracles_.violation(std::string(message));
}

// --- Slurm ------------------------------------------------------------------------------------------------------------

void Oracles::watch_cluster(SlurmSite::Cluster& cluster) {
  cluster.slurm->on_update = [this, &cluster](const SimNode& node, const SimNodeUpdate& update, const std::string& user) {
    const auto place = std::pair(cluster.controller, node.name);
    Hold& hold = foreign_[place];
    // By ReturnToService, registration ends any DOWN, also an admin's.
    if (!node.down) hold.down = false;
    if (update.state) note(fmt::format("node {} {} by {}: {}", node.name, *update.state, user, update.reason.value_or("")));
    const std::string state = update.state.value_or("");
    const bool frees = state == "RESUME" || state == "UNDRAIN" || state == "IDLE";
    if (user == kSlurmAdmin) {
      hold.since = loop_.clock().mono();
      // Whose reason stands there has the drain too, whoever drained.
      hold.drain = state == "DRAIN" || (state == "DOWN" && node.drain) || (hold.drain && !frees);
      hold.down = state == "DOWN" || (hold.down && (!frees || state == "UNDRAIN"));
      return;
    }
    if (!hold.drain && !hold.down) return;
    if (state == "DRAIN" && !update.reason) hold.drain = true;
    // Slurm has no conditional write: what an admin does between our look and our write is lost.
    const auto asked = asked_.find(node.name);
    if ((frees || (update.reason && user == "slurm")) && asked != asked_.end() && hold.since >= asked->second) {
      foreign_.erase(place);
      return;
    }
    if (frees) {
      violation(
          fmt::format("{} of node {}, which an admin had drained (its reason now: \"{}\")", state, node.name, node.reason));
      foreign_.erase(place);
    } else if (update.reason && user == "slurm") {
      violation(fmt::format("the reason of node {}, which an admin had drained, was written over", node.name));
    }
  };
  cluster.slurm->on_delete = [this, &cluster](const SimNode& node, const std::vector<const SimJob*>& jobs) {
    note("node " + node.name + " deleted from Slurm");
    foreign_.erase({cluster.controller, node.name});
    abandoned_.erase({cluster.controller, node.name});
    if (!jobs.empty()) {
      violation(fmt::format("the record of node {} was deleted under job {} ({})", node.name, jobs.front()->id,
                            to_string(jobs.front()->state)));
    }
  };
}

// --- The end ----------------------------------------------------------------------------------------------------------

void Oracles::unmet_nodeset(const Json& nodeset, std::vector<std::string>& out) const {
  const std::string ns = namespace_of(nodeset), name = name_of(nodeset);
  const kube::Key controller{ns, text_at(nodeset, {"spec", "controllerRef", "name"})};
  const Json* owner = api_.peek(op::resources::kController, controller);
  if (owner == nullptr) return;  // Nothing can be run without one.
  const auto site = site_.clusters().find(op::controller_object_name(controller.name) + "." + ns);
  const SimSlurm* slurm = site == site_.clusters().end() ? nullptr : site->second->slurm.get();
  const std::int64_t wanted = core::get_int(nodeset, {"spec", "replicas"}, 1);
  std::int64_t have = 0;
  bool all_usable = true;
  for (const auto& [key, stored] : api_.store().all("pods")) {
    const Json& pod = stored->body;
    if (key.ns != ns || !is_worker(pod) || label(pod, api::kLabelInstance) != name) continue;
    if (terminating(pod) || ended(pod)) {
      out.push_back("pod " + key.str() + " is on its way out");
      continue;
    }
    ++have;
    const std::string node_name = slurm_node_of(pod);
    const SimNode* node = slurm == nullptr ? nullptr : slurm->node(node_name);
    if (!condition_true(pod, "Ready")) out.push_back("pod " + key.str() + " is not ready");
    if (node == nullptr) {
      out.push_back("pod " + key.str() + " has no node in Slurm");
      continue;
    }
    const bool cordoned = annotation(pod, api::kAnnotationPodCordon) == "true" || [&] {
      const Json* host = api_.peek(kinds::kNode, {"", text_at(pod, {"spec", "nodeName"})});
      return host != nullptr && core::get_bool(*host, {"spec", "unschedulable"});
    }();
    const auto held = foreign_.find({controller, node_name});
    const Hold hold = held == foreign_.end() ? Hold{} : held->second;
    if (!slurm->usable(*node)) all_usable = false;
    if (hold.drain || (hold.down && node->down)) {
      if (hold.drain && !node->drain)
        out.push_back("node " + node_name + " is not drained any more, though its admin did not free it");
    } else if (cordoned) {
      if (!node->drain) out.push_back("node " + node_name + " is not drained, though cordoned");
    } else if (!slurm->usable(*node)) {
      out.push_back("node " + node_name + " is not usable: " + shown(*slurm, *node));
    }
  }
  if (have != wanted) out.push_back(fmt::format("NodeSet {}/{} has {} workers of {}", ns, name, have, wanted));
  if (core::get_int(nodeset, {"status", "observedGeneration"}) != core::get_int(nodeset, {"metadata", "generation"})) {
    out.push_back("the status of NodeSet " + key_of(nodeset) + " is of an older generation");
  }
  if (core::get_int(nodeset, {"status", "replicas"}) != wanted)
    out.push_back("status.replicas of NodeSet " + key_of(nodeset) + " is wrong");
  if (condition_true(nodeset, api::kConditionReady) != all_usable && have == wanted) {
    out.push_back(fmt::format("Ready of NodeSet {} is wrong: all usable is {}", key_of(nodeset), all_usable));
  }
}

void Oracles::unmet_slurm(const SlurmSite::Cluster& cluster, std::vector<std::string>& out) const {
  const Json* owner = api_.peek(op::resources::kController, cluster.controller);
  if (owner == nullptr) return;
  if (!cluster.slurm->up()) {
    out.push_back("slurmctld of " + cluster.controller.str() + " is down");
    return;
  }
  for (const auto& [name, node] : cluster.slurm->nodes()) {
    const std::string& node_name = name;
    const auto& pods = api_.store().all("pods");
    const bool has_pod = std::any_of(pods.begin(), pods.end(), [&](const auto& entry) {
      return entry.first.ns == cluster.controller.ns && is_worker(entry.second->body) &&
             slurm_node_of(entry.second->body) == node_name;
    });
    // The state of a cluster that ended may come back with one made anew. Whose workers' records are in it is told by their
    // comments, by our reasons, and by NodeSets of their features; of others nobody can tell.
    const bool nameless = node.down && node.comment.empty() && !slurm::ours(node.reason) &&
                          std::ranges::none_of(node.features, [&](const std::string& feature) {
                            return api_.peek(op::resources::kNodeSet, {cluster.controller.ns, feature}) != nullptr;
                          });
    if (nameless && abandoned_.contains({cluster.controller, name})) continue;
    if (!has_pod) out.push_back("node " + name + " is a record without a pod: " + shown(*cluster.slurm, node));
  }
}

std::vector<std::string> Oracles::unmet() const {
  std::vector<std::string> out;
  const auto of_kind = [&](const kube::Resource& resource, const auto& check) {
    for (const auto& [key, stored] : api_.store().all(table_name(resource))) {
      if (terminating(stored->body)) {
        out.push_back(resource.kind + " " + key.str() + " is still being deleted");
        continue;
      }
      check(key, stored->body);
    }
  };
  of_kind(op::resources::kController, [&](const kube::Key& key, const Json& object) {
    if (!condition_true(object, api::kConditionReady)) out.push_back("Controller " + key.str() + " is not Ready");
    const Json* map = api_.peek(kinds::kConfigMap, {key.ns, op::config_map_name(key.name)});
    const SlurmSite::Cluster* cluster = site_.find(key);
    const std::string conf = map == nullptr ? "" : text_at(*map, {"data", "slurm.conf"});
    if (cluster != nullptr && cluster->slurm->up() && cluster->slurm->configuration() != conf) {
      out.push_back("slurmctld of " + key.str() + " runs with another configuration than the ConfigMap's");
    }
  });
  of_kind(op::resources::kRestApi, [&](const kube::Key& key, const Json& object) {
    const kube::Key controller{key.ns, text_at(object, {"spec", "controllerRef", "name"})};
    if (api_.peek(op::resources::kController, controller) == nullptr) return;
    if (!condition_true(object, api::kConditionReady)) out.push_back("RestApi " + key.str() + " is not Ready");
  });
  of_kind(op::resources::kNodeSet, [&](const kube::Key& key, const Json& object) {
    unmet_nodeset(object, out);
    (void)key;
  });
  for (const auto& [host, cluster] : site_.clusters()) unmet_slurm(*cluster, out);
  // Orphans: children whose owner is gone.
  for (const std::string& table : api_.store().tables()) {
    for (const auto& [key, stored] : api_.store().all(table)) {
      const Json* owners = core::find(stored->body, {"metadata", "ownerReferences"});
      if (owners == nullptr) continue;
      for (const Json& owner : *owners) {
        const std::string kind = text_at(owner, {"kind"});
        for (const kube::Resource* resource :
             {&op::resources::kController, &op::resources::kRestApi, &op::resources::kNodeSet}) {
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

Json Oracles::final_state() const {
  Json out = Json::object();
  for (const std::string& table : api_.store().tables()) {
    const bool about_time = table.starts_with("events") || table.starts_with("leases") || table.starts_with("endpointslices");
    if (about_time) continue;
    for (const auto& [key, stored] : api_.store().all(table)) {
      Json entry = Json::object();
      const Json& body = stored->body;
      // Names of pods of Deployments, and of their ReplicaSets, are random.
      const bool generated = core::find(body, {"metadata", "generateName"}) != nullptr || table.starts_with("replicasets");
      const std::string name = generated ? table + " " + label(body, api::kLabelName) : table + " " + key.str();
      if (const Json* labels = core::find(body, {"metadata", "labels"}); labels != nullptr && !generated)
        entry["labels"] = *labels;
      // The revision of slurmctld's pod has the digests of its keys in it, which are random.
      if (table == "pods" && !is_worker(body) && entry.contains("labels")) entry["labels"].erase("controller-revision-hash");
      if (table != "pods" && table != "secrets" && !generated && table != "nodes") {
        if (const Json* spec = core::find(body, {"spec"})) entry["spec"] = *spec;
        if (const Json* data = core::find(body, {"data"})) entry["data"] = *data;
      }
      if (table == "services") entry["spec"].erase("clusterIP"), entry["spec"].erase("clusterIPs");
      if (table == "persistentvolumeclaims") entry["spec"].erase("volumeName");
      if (table == "statefulsets.apps" || table == "deployments.apps") entry["spec"].erase("template");
      if (const Json* conditions = core::find(body, {"status", "conditions"}); conditions != nullptr && table != "nodes") {
        for (const Json& c : *conditions) {
          if (text_at(c, {"status"}) == "True" && !generated) entry["conditions"].push_back(text_at(c, {"type"}));
        }
        if (entry.contains("conditions")) std::sort(entry["conditions"].begin(), entry["conditions"].end());
      }
      out[name] = std::move(entry);
    }
  }
  for (const auto& [host, cluster] : site_.clusters()) {
    for (const auto& [name, node] : cluster->slurm->nodes()) {
      out["slurm " + host + " " + name] = {
          {"usable", cluster->slurm->usable(node)}, {"drain", node.drain}, {"features", node.features}};
    }
  }
  return out;
}

Admission worker_policy() {
  return [](const AdmissionRequest& request) -> std::optional<Refusal> {
    if (request.operation != "DELETE" || !(request.resource == kinds::kPod) || request.before == nullptr) return {};
    const Json& pod = *request.before;
    if (!is_worker(pod)) return {};
    if (!request.user.ends_with(":generic-garbage-collector") && !request.user.ends_with(":namespace-controller")) return {};
    if (!annotation(pod, api::kAnnotationDeletionEvidence).empty() || terminating(pod) || ended(pod) || never_started(pod))
      return {};
    return make_status(403, "Forbidden", "worker " + request.key.str() + " may run jobs: slurm-operator has not released it",
                       &request.resource, request.key.name);
  };
}

namespace {

/// It is being deleted, and waits for the operator.
bool ends(const Json& object, std::string_view finalizer) {
  if (!terminating(object)) return false;
  const Json* finalizers = core::find(object, {"metadata", "finalizers"});
  return finalizers != nullptr && std::find(finalizers->begin(), finalizers->end(), finalizer) != finalizers->end();
}

bool owned_by(const Json& object, const std::string& uid) {
  const Json* owners = core::find(object, {"metadata", "ownerReferences"});
  return owners != nullptr &&
         std::any_of(owners->begin(), owners->end(), [&](const Json& owner) { return text_at(owner, {"uid"}) == uid; });
}

}  // namespace

Admission cluster_policy(const KubeApi& api) {
  return [&api](const AdmissionRequest& request) -> std::optional<Refusal> {
    if (request.operation != "DELETE" || request.before == nullptr || terminating(*request.before)) return {};
    const bool cleaner = request.user.ends_with(":namespace-controller");
    if (!cleaner && !request.user.ends_with(":generic-garbage-collector")) return {};
    const bool restapi = request.resource == op::resources::kRestApi;
    const std::string app = label(*request.before, api::kLabelName);
    if (!restapi) {
      if (app != op::kAppController && app != op::kAppRestApi && app != op::kAppWorker) return {};
      if (request.resource == kinds::kPod && app == op::kAppWorker) return {};
      static const std::set<std::string> kept{"Pod",    "Service",     "Endpoints",  "EndpointSlice", "ConfigMap",
                                              "Secret", "StatefulSet", "Deployment", "ReplicaSet"};
      if (!kept.contains(request.resource.kind)) return {};
    }
    const auto refuse = [&](const std::string& why) {
      return make_status(403, "Forbidden", why, &request.resource, request.key.name);
    };
    const Json* space = api.peek(kinds::kNamespace, {"", request.key.ns});
    const bool namespace_ends = cleaner || (space != nullptr && terminating(*space));
    for (const auto& [key, stored] : api.store().all(table_name(op::resources::kController))) {
      if (key.ns != request.key.ns || text_at(stored->body, {"spec", "deletionPolicy"}) != "Drain") continue;
      if (!namespace_ends && (restapi || !ends(stored->body, api::kFinalizerController))) continue;
      return refuse("Controller " + key.str() + " has deletionPolicy: Drain, its workers are not gone yet");
    }
    if (namespace_ends || app != op::kAppRestApi ||
        (request.resource.kind != "Service" && request.resource.kind != "Deployment"))
      return {};
    for (const auto& [key, stored] : api.store().all(table_name(op::resources::kRestApi))) {
      if (key.ns != request.key.ns || !ends(stored->body, api::kFinalizerRestApi)) continue;
      if (!owned_by(*request.before, text_at(stored->body, {"metadata", "uid"}))) continue;
      return refuse("RestApi " + key.str() + " serves NodeSets that are being drained");
    }
    return {};
  };
}

}  // namespace sim
