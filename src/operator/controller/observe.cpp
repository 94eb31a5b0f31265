#include "operator/controller/observe.hpp"

#include <algorithm>

#include "api/nodeset.hpp"
#include "kube/acts.hpp"
#include "operator/common/accountings.hpp"
#include "operator/common/deployments.hpp"
#include "operator/common/named_objects.hpp"
#include "operator/common/namesakes.hpp"
#include "operator/common/slinky.hpp"
#include "operator/common/topology.hpp"
#include "operator/controller/backups.hpp"
#include "slinky/status.hpp"
#include "slinky/worker_names.hpp"
#include "slinky/workers.hpp"
#include "slurm/holds.hpp"

namespace op::controller {
namespace {

NamedFiles read_files(kube::Recorder& recorder, const std::string& ns, const std::string& name) {
  const kube::Named<kube::Object> named = recorder.config_map({ns, name});
  NamedFiles out{name, named.presence, {}};
  if (named.presence != kube::Presence::kPresent) return out;
  const auto read = [&](std::string_view field, std::map<std::string, std::string>& to) {
    const core::Json* data = core::find(named.record->body, {field});
    if (data == nullptr || !data->is_object()) return;
    for (const auto& [file, text] : data->items()) {
      if (text.is_string()) to[file] = text.get<std::string>();
    }
  };
  read("data", out.files);
  read("binaryData", out.binary);
  return out;
}

std::vector<NamedFiles> read_all(kube::Recorder& recorder, const std::string& ns,
                                 const std::vector<api::LocalObjectReference>& refs) {
  std::vector<NamedFiles> out;
  for (const api::LocalObjectReference& ref : refs) out.push_back(read_files(recorder, ns, ref.name));
  return out;
}

bool owner_is_gone(const Caches& caches, const kube::PodRecord& worker) {
  const kube::OwnerReference* owner = worker.meta.controller_owner();
  if (owner == nullptr || owner->kind != resources::kNodeSet.kind) return false;
  const kube::ObjectPtr nodeset = caches.nodesets.find({worker.meta.ns, owner->name});
  return nodeset == nullptr || nodeset->meta.uid != owner->uid;
}

/// Returns the facts about a NodeSet. Parses only the fields for these facts: a partition with jobs must not be removed because
/// another field cannot be parsed.
NodeSetFacts nodeset_facts(const kube::Object& object) {
  NodeSetFacts facts{object.meta.name,   slurm_node_set_name(object), false, "", object.meta.terminating(), "",
                     host_prefix(object)};
  facts.ending = object.meta.terminating() && !kube::has_finalizer(object.meta, "orphan");
  const core::Json* partition = core::find(object.body, {"spec", "partition"});
  if (partition == nullptr) return facts;
  if (const auto read = api::from_json<api::NodeSetPartition>(*partition, "spec.partition")) {
    facts.partition = read->enabled;
    facts.partition_config = read->config;
  } else {
    facts.partition = true;
    facts.partition_error = read.error().message;
  }
  return facts;
}

/// Returns the name of the cluster in Slurm, even if other fields of the Controller cannot be parsed.
std::string name_of(const kube::Object& controller) {
  const std::string given = core::get_string(controller.body, {"spec", "clusterName"});
  return given.empty() ? controller.meta.ns + "_" + controller.meta.name : given;
}

/// Returns the "ns/name" of an older Controller with the same cluster name, or "". Accounting and reports would treat two
/// clusters with the same name as one cluster.
std::string find_older_cluster(const Caches& caches, const Observed& self) {
  const kube::ObjectMeta& ours = self.object->meta;
  const std::string name = name_of(*self.object);
  if (self.controller.spec.external) return "";
  for (const kube::ObjectPtr& other : caches.controllers.all()) {
    const kube::ObjectMeta& theirs = other->meta;
    if (theirs.uid == ours.uid || core::get_bool(other->body, {"spec", "external"}) ||
        !same_cluster_name(name_of(*other), name))
      continue;
    // Two Controllers with the same Accounting are handled by AccountingFacts::namesake: the Controller that has joined keeps
    // the name, even if this Controller is newer.
    if (self.accounting && self.accounting->exists && accounting_ref(*other) == accounting_ref(*self.object)) continue;
    if (std::tie(theirs.created, theirs.ns, theirs.name) < std::tie(ours.created, ours.ns, ours.name))
      return theirs.key().str();
  }
  return "";
}

std::optional<AccountingFacts> read_accounting(const Caches& caches, kube::Recorder& recorder, const kube::Object& self) {
  const kube::Key key = accounting_ref(self);
  if (key.name.empty()) return {};
  AccountingFacts out{.name = key.name, .error = {}, .slurmdbd = {}, .slurm_key = {}, .jwt_key = {}, .namesake = {}};
  const kube::ObjectPtr object = caches.accountings.find(key);
  if (!object) return out;
  out.exists = true;
  api::Accounting accounting;
  out.error = read_object(*object, accounting);
  out.slurmdbd = accounting_endpoint(accounting.spec, key.ns, key.name);
  out.external = accounting.spec.external;
  const api::Condition* serving = api::find_condition(accounting.status.conditions, api::kConditionServing);
  // For an external slurmdbd, the condition counts only if it is about the present spec, because the spec has the address.
  out.serving = serving != nullptr && serving->status == api::ConditionStatus::kTrue &&
                (!out.external || serving->observed_generation == object->meta.generation);
  out.terminating = object->meta.terminating();
  const std::vector<NamedBy> clusters = clusters_of(caches.controllers, caches.config_maps, key, accounting.spec);
  if (!out.external) {
    AccountingKeys keys = read_accounting_keys(recorder, key.ns, accounting.spec, clusters);
    out.slurm_key = std::move(keys.slurm);
    out.jwt_key = std::move(keys.jwt);
  }
  if (const kube::ObjectPtr set = caches.stateful_sets.find({key.ns, accounting_object_name(key.name)}); set && !out.external) {
    out.slurmdbd_changes = !rolled_out(set.get(), 1);
    const ImageRelease wanted = slurm_release(made_image(*set, kAppAccounting));
    const kube::ObjectPtr told = caches.config_maps.find({key.ns, accounting_object_name(key.name)});
    const ImageRelease said = slurmdbd_release(told.get());
    if (told) out.told_release = core::get_string(told->body, {"data", kReleaseFile});
    out.slurmdbd_release = out.slurmdbd_changes || said == ImageRelease{} ? wanted : said;
  }
  for (const NamedBy& cluster : clusters) {
    if (cluster.object->meta.uid == self.meta.uid) break;
    if (!same_cluster_name(name_of(*cluster.object), name_of(self))) continue;
    out.namesake = cluster.object->meta.name;
    out.namesake_joined = cluster.joined;
  }
  return out;
}

/// True if the node is DOWN, the node's comment or reason shows that the node was a worker, and no NodeSet manages it any more.
bool left_behind(const Observed& observed, const slurm::Node& node) {
  if (node.state.base != "DOWN" || observed.worker_nodes.contains(node.name)) return false;
  const auto comment = worker_comment(node.comment);
  // With host networking, a worker can be registered under a node name other than its pod's name.
  if (comment && std::ranges::find(observed.workers, core::get_string(*comment, {"podName"})) != observed.workers.end()) {
    return false;
  }
  if (comment && core::get_string(*comment, {"namespace"}) != observed.object->meta.ns) return false;
  if (!comment && !slurm::held_by(node.reason, slurm::Owner::kOperator)) return false;
  const std::string nodeset = comment ? core::get_string(*comment, {"nodeSetName"}) : "";
  return std::none_of(observed.nodesets.begin(), observed.nodesets.end(), [&](const NodeSetFacts& facts) {
    return facts.object == nodeset ||
           std::find(node.features.begin(), node.features.end(), facts.slurm_name) != node.features.end();
  });
}

/// Returns the name in Slurm of a deleted NodeSet, derived from one of its workers. With host networking, a worker does not
/// show the hostname in the NodeSet's template. The function then assumes that the template has no hostname.
std::string slurm_name_by_worker(const kube::PodRecord& worker, const std::string& nodeset) {
  api::NodeSetSpec spec;
  if (worker.meta.name.starts_with(nodeset + "-")) {
    const std::string ordinal = worker.meta.name.substr(nodeset.size() + 1);
    if (worker.hostname.ends_with(ordinal))
      spec.pod_template.spec = {{"hostname", worker.hostname.substr(0, worker.hostname.size() - ordinal.size())}};
  }
  return slurm_node_set_name(spec, nodeset);
}

/// Returns the pods that mount the Secret of the auth/slurm key itself instead of the keyring. slurmctld's pod can mount both
/// the Secret and the keyring, because the JWT key can be in the same Secret.
std::vector<std::string> old_mounts(const Observed& observed, const std::vector<kube::PodPtr>& workers) {
  std::vector<std::string> out;
  for (const auto* pods : {&observed.pods, &workers}) {
    for (const kube::PodPtr& pod : *pods) {
      if (pod->mounts_secret(observed.slurm_key.ref.secret) && !pod->mounts_secret(observed.keyring.ref.secret))
        out.push_back(pod->meta.name);
    }
  }
  return out;
}

bool makes_http_probed(const kube::Object& set) {
  const core::Json* containers = core::find(set.body, {"spec", "template", "spec", "containers"});
  if (containers == nullptr || !containers->is_array()) return false;
  return std::ranges::any_of(*containers, [](const core::Json& container) {
    return core::get_string(container, {"name"}) == kAppController && std::ranges::any_of(kube::kProbes, [&](auto probe) {
             const core::Json* request = core::find(container, {probe, "httpGet"});
             return request != nullptr && request->is_object();
           });
  });
}

std::vector<std::string> find_http_probed(const Observed& observed) {
  std::vector<std::string> out;
  const auto add = [&](const std::vector<kube::PodPtr>& pods, std::string_view daemon) {
    for (const kube::PodPtr& pod : pods) {
      if (std::ranges::find(pod->http_probed, daemon) != pod->http_probed.end()) out.push_back("pod " + pod->meta.name);
    }
  };
  for (const kube::ObjectPtr& set : {observed.stateful_set, observed.backup_set}) {
    if (set && makes_http_probed(*set)) out.push_back("StatefulSet " + set->meta.name);
  }
  add(observed.pods, kAppController);
  add(observed.backup_pods, kAppController);
  add(observed.worker_pods, kAppWorker);
  return out;
}

/// Returns the creation times of workers that might run but have not registered. Empty while Slurm does not answer, because it
/// is then unknown which workers have registered.
std::vector<core::WallTime> find_starting(const std::vector<kube::PodPtr>& workers, const slurm::SnapshotPtr& snapshot) {
  std::vector<core::WallTime> out;
  if (!snapshot || !snapshot->complete()) return out;
  for (const kube::PodPtr& pod : workers) {
    const slurm::Node* node = snapshot->node(slurm_node_name(*pod));
    const bool may_run =
        !pod->node_name.empty() && !pod->meta.terminating() && pod->phase != "Failed" && pod->phase != "Succeeded";
    if (may_run && (node == nullptr || !has_registered(*pod, *node))) out.push_back(pod->meta.created);
  }
  return out;
}

/// Reads the ServiceMonitor if its kind exists. Without the Prometheus operator, the kind does not exist, and a watch of the
/// kind would never return anything.
void read_service_monitor(kube::Recorder& recorder, Observed& out) {
  const api::Controller& controller = out.controller;
  const bool was = api::find_condition(controller.status.conditions, api::kConditionMetricsServed) != nullptr;
  if (!was && !controller.spec.metrics.service_monitor.enabled) return;
  out.service_monitors =
      recorder.metadata(kube::resources::kCustomResourceDefinition, {"", resources::kServiceMonitorDefinition}).presence;
  if (out.service_monitors != kube::Presence::kPresent) return;
  const kube::ObjectMeta& meta = out.object->meta;
  const kube::Named<kube::Object> named =
      recorder.object(resources::kServiceMonitor, {meta.ns, controller_object_name(meta.name)});
  // Either the ServiceMonitor was not read yet, or the API server does not serve the kind ServiceMonitor yet.
  if (named.presence == kube::Presence::kUnknown) out.service_monitors = kube::Presence::kUnknown;
  out.service_monitor = named.record;
}

}  // namespace

std::vector<StaleRecord> find_stale_records(const Observed& observed, const plan::Observing& observing) {
  std::vector<StaleRecord> out;
  if (!observed.snapshot || !observed.snapshot->complete()) return out;
  for (const auto& [name, node] : observed.snapshot->nodes) {
    if (!left_behind(observed, *node)) continue;
    out.push_back({name, slurm::LeftBehind::of(observing, *observed.snapshot, {observed.cluster, name},
                                               "its worker and its NodeSet are gone")});
  }
  return out;
}

std::shared_ptr<const Observed> ControllerController::observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                                    const run::Observation& context) {
  auto out = std::make_shared<Observed>();
  out->context = context;
  out->cluster = cluster_key(key.ns, key.name);
  out->cluster_domain = cluster_domain_;
  out->object = caches_.controllers.find(key);
  if (!out->object) return out;

  out->parse_error = read_object(*out->object, out->controller);
  const api::ControllerSpec& spec = out->controller.spec;

  out->slurm_key = read_key(recorder, key.ns, slurm_key_ref(spec, key.name));
  out->keyring = read_keyring(recorder, key.ns, key.name);
  out->jwt_key = read_key(recorder, key.ns, jwt_key_ref(spec, key.name));
  if (spec.sssd_conf_ref)
    out->sssd_conf = read_key(recorder, key.ns, {.secret = spec.sssd_conf_ref->name, .key = spec.sssd_conf_ref->key});
  out->config_files = read_all(recorder, key.ns, spec.config_file_refs);
  out->prolog = read_all(recorder, key.ns, spec.prolog_script_refs);
  out->epilog = read_all(recorder, key.ns, spec.epilog_script_refs);
  out->prolog_slurmctld = read_all(recorder, key.ns, spec.prolog_slurmctld_script_refs);
  out->epilog_slurmctld = read_all(recorder, key.ns, spec.epilog_slurmctld_script_refs);
  if (spec.jwks_key_ref) out->jwks = read_files(recorder, key.ns, spec.jwks_key_ref->name);

  out->accounting = read_accounting(caches_, recorder, *out->object);
  out->older_cluster = find_older_cluster(caches_, *out);
  const core::Json none = core::Json::object();
  out->missing = missing_objects(recorder, key.ns, spec.pod_template,
                                 {{"spec.slurmctld", spec.slurmctld},
                                  {"spec.reconfigure", spec.inplace_reconfigure ? spec.reconfigure : none},
                                  {"spec.logfile", spec.logfile}});

  std::vector<std::pair<std::pair<std::string, Precedence>, kube::ObjectPtr>> nodesets;
  for (const kube::ObjectPtr& nodeset : caches_.nodesets.by_index(kIndexController, out->cluster)) {
    nodesets.push_back({{slurm_node_set_name(*nodeset), precedence(workers_in(caches_.pods), *nodeset)}, nodeset});
  }
  std::ranges::sort(nodesets, {}, [](const auto& item) { return item.first; });
  for (const auto& [order, nodeset] : nodesets) out->nodesets.push_back(nodeset_facts(*nodeset));
  for (const kube::ObjectPtr& restapi : caches_.restapis.by_index(kIndexController, out->cluster)) {
    // In a foreground deletion, a RestApi exists until its slurmrestd is gone, and this slurmrestd may be waiting for the
    // Controller. So our finalizer on the RestApi, not the RestApi's existence, shows whether slurmrestd still serves.
    const bool serves = kube::has_finalizer(restapi->meta, api::kFinalizerRestApi);
    out->restapis.push_back({restapi->meta.name, restapi->meta.terminating() && serves});
  }
  out->reads_kube_nodes = caches_.reads_nodes;
  if (spec.topology && caches_.reads_nodes) {
    const auto nodes = caches_.nodes.all();
    out->no_kube_nodes = nodes.empty();
    for (const auto& node : nodes) {
      if (std::string place = topology_of(*spec.topology, node->meta); !place.empty()) out->places.insert(std::move(place));
    }
  }
  const std::vector<kube::PodPtr> workers = caches_.pods.by_index(kIndexCluster, out->cluster);
  out->worker_pods = workers;
  for (const kube::PodPtr& pod : workers) {
    out->workers.push_back(pod->meta.name);
    out->worker_nodes.insert(slurm_node_name(*pod));
    out->workers_registered = out->workers_registered || seen_in_slurm(*pod) || slurmd_started(*pod);
    const std::string nodeset(pod->meta.label(api::kLabelInstance));
    const auto facts = std::ranges::find(out->nodesets, nodeset, &NodeSetFacts::object);
    if (facts == out->nodesets.end()) {
      out->left_nodesets.emplace(slurm_name_by_worker(*pod, nodeset), nodeset);
    } else if (pod->meta.controller_owner() == nullptr) {
      // Kubernetes has removed this worker's owner reference: the NodeSet was deleted alone, with the finalizer "orphan".
      facts->ending = false;
    }
    if (!owner_is_gone(caches_, *pod)) continue;
    out->left_workers.push_back({pod, {}});
    if (out->parse_error.empty() && !spec.drains_on_deletion())
      out->left_workers.back().ends = OwnerEnds::of(context.observing, out->object->meta, *pod);
  }

  const auto named = [&](std::string name) { return kube::Key{key.ns, std::move(name)}; };
  out->service = caches_.services.find(named(controller_object_name(key.name)));
  out->internal_service = caches_.services.find(named(controller_internal_service_name(key.name)));
  out->workers_service = caches_.services.find(named(workers_service_name(key.name)));
  out->workers_pdb = caches_.pod_disruption_budgets.find(named(workers_pdb_name(key.name)));
  out->config_map = caches_.config_maps.find(named(config_map_name(key.name)));
  out->file_copies = caches_.config_maps.find(named(config_files_name(key.name)));
  out->accepted_copies = caches_.config_maps.find(named(accepted_files_name(key.name)));
  out->stateful_set = caches_.stateful_sets.find(named(controller_object_name(key.name)));
  out->backup_set = caches_.stateful_sets.find(named(backup_object_name(key.name)));
  for (const std::string& pod : addressed_pods(*out)) {
    if (kube::ObjectPtr service = caches_.services.find(named(pod))) out->slurmctld_services[pod] = std::move(service);
  }
  out->slurmctld_pdb = caches_.pod_disruption_budgets.find(named(controller_object_name(key.name)));
  read_service_monitor(recorder, *out);
  out->claim = caches_.claims.find(named(state_claim_name(key.name)));
  out->pods = caches_.pods.by_index(kIndexInstance, instance_key(key.ns, kAppController, key.name));
  for (const kube::PodPtr& pod : out->pods) {
    if (!out->usage_missing) out->usage_missing = UsageMissing::of(context.observing, *pod);
  }
  out->backup_pods = caches_.pods.by_index(kIndexInstance, instance_key(key.ns, kAppBackup, key.name));
  out->http_probed = find_http_probed(*out);
  out->old_mounts = old_mounts(*out, workers);
  if (out->keyring.rotation || out->keyring.content != out->slurm_key.content) {
    for (const kube::PodPtr& pod : caches_.pods.all()) {
      const bool login = pod->meta.ns == key.ns && pod->meta.label(api::kLabelName) == kAppLogin;
      if (login && pod->mounts_secret(out->keyring.ref.secret)) out->login_pods.push_back(pod);
    }
  }
  out->snapshot = wiring_.snapshot(out->cluster);
  out->starting = find_starting(workers, out->snapshot);
  out->stale_records = find_stale_records(*out, context.observing);
  out->stopped = stops_deletions(out->object->meta);
  if (out->snapshot) {
    const bool persistent = spec.persistence.enabled || spec.external || !out->parse_error.empty();
    out->doubt = doubt_of(workers, *out->snapshot, persistent ? std::nullopt : std::optional(youngest(out->pods)));
  }
  return out;
}

}  // namespace op::controller
