#include "operator/nodeset/observe.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "operator/common/named_objects.hpp"
#include "operator/common/slinky.hpp"
#include "operator/common/ssh.hpp"
#include "operator/nodeset/build_worker.hpp"
#include "operator/nodeset/daemon_nodes.hpp"
#include "operator/nodeset/parts.hpp"
#include "slinky/config_map.hpp"
#include "slinky/releases.hpp"
#include "slinky/status.hpp"
#include "slinky/worker_names.hpp"

namespace op::nodeset {
namespace {

kube::Presence key_presence(const KeyRef& ref, const kube::Key& controller, kube::Recorder& recorder) {
  if (read_keyring(recorder, controller.ns, controller.name).usable()) return kube::Presence::kPresent;
  const SecretFacts source = read_key(recorder, controller.ns, ref);
  if (source.presence == kube::Presence::kUnknown || source.usable()) return kube::Presence::kUnknown;
  return kube::Presence::kAbsent;
}

std::optional<ControllerView> view_controller(const Caches& caches, const kube::Key& key, kube::Recorder& recorder,
                                              std::string& error) {
  const kube::ObjectPtr object = caches.controllers.find(key);
  if (object == nullptr) return {};
  const core::Result<api::Controller> controller = api::from_json<api::Controller>(object->body);
  if (!controller) {
    error = "Controller " + key.name + " cannot be read: " + controller.error().message;
    return {};
  }
  ControllerView view;
  view.meta = object->meta;
  // A Controller can be deleted without its workers. So the deletion of the Controller counts only after the Controller's
  // status announces that the cluster ends.
  if (!announces_end(*object)) view.meta.deletion_timestamp.reset();
  view.endpoint = controller_endpoint(controller->spec, key.ns, key.name);
  view.conf_servers = conf_servers(controller->spec, key.ns, key.name);
  view.slurm_key = slurm_key_ref(controller->spec, key.name);
  view.external = controller->spec.external;
  if (!view.external) view.topology = controller->spec.topology;
  view.drain_on_deletion = controller->spec.drains_on_deletion();
  if (!controller->spec.persistence.enabled && !view.external) {
    const std::string slurmctld = instance_key(key.ns, kAppController, key.name);
    view.state_since = youngest(caches.pods.by_index(kIndexInstance, slurmctld));
  }
  for (const kube::PodPtr& pod : caches.pods.by_index(kIndexInstance, instance_key(key.ns, kAppController, key.name))) {
    if (pod->ready()) view.ready_since = pod->ready_since;
  }
  if (const kube::ObjectPtr map = caches.config_maps.find({key.ns, config_map_name(key.name)})) {
    const slurm::conf::Conf conf = offered_conf(*map);
    // If the offered slurm.conf of an external Controller lacks SlurmdTimeout, the timeout of the external slurmctld is
    // unknown. Then assume that slurmctld waits forever.
    const bool known = !view.external || conf.get("SlurmdTimeout").has_value();
    view.slurmd_timeout = known ? slurmd_timeout(conf) : core::Duration{0};
    view.max_nodes = max_node_count(conf);
    view.contains_jobs = view.external || contains_jobs(conf);
    if (!view.external) view.places = read_places(*map);
    const std::string loaded_topology = loaded_file(*map, kTopologyYaml);
    const std::string offered_topology = core::get_string(map->body, {"data", kTopologyYaml});
    view.topology_goes = !view.external && !view.topology && !(loaded_topology.empty() && offered_topology.empty());
    if (view.topology) {
      view.loaded_units = read_topology(loaded_topology);
      // Remove loaded units that the offered topology.yaml no longer has, so that workers are not placed into them.
      const TopologyUnits offered = read_topology(offered_topology);
      std::erase_if(view.loaded_units, [&](const auto& unit) { return !offered.contains(unit.first); });
    }
  }
  view.key = key_presence(view.slurm_key, key, recorder);
  return view;
}

std::string find_partition_refusal(const Caches& caches, const kube::Key& nodeset, const api::NodeSetSpec& spec) {
  const kube::ObjectPtr map = caches.config_maps.find({nodeset.ns, config_map_name(spec.controller_ref.name)});
  if (map == nullptr || !spec.partition.enabled) return "";
  const auto left_out = read_left_out(*map);
  const auto it = left_out.find(slurm_node_set_name(spec, nodeset.name));
  return it != left_out.end() && it->second.config == spec.partition.config ? it->second.refusal : "";
}

/// The NodeSet `other` takes precedence. Adds to `rival` the worker names of all Kubernetes nodes that `other` matches.
void add_claims(const Caches& caches, const kube::Object& other, Rival& rival) {
  const core::Json* pod = core::find(other.body, {"spec", "template", "spec"});
  const NodeSelection selection(pod == nullptr ? core::Json::object() : *pod);
  for (const auto& node : caches.nodes.all()) {
    if (selection.judge(*node).starts) rival.nodes.insert(daemon_hostname(*node));
  }
}

/// Finds other NodeSets of the same Controller that use this NodeSet's name in Slurm, or names of its workers.
void look_at_others(const Caches& caches, const slurm::ClusterKey& cluster, Observed& out) {
  const kube::Object& self = *out.object;
  const std::string name = slurm_node_set_name(self);
  const WorkersOf workers_of = workers_in(caches.pods);
  Precedence first = precedence(workers_of, self);
  for (const kube::ObjectPtr& other : caches.nodesets.by_index(kIndexController, cluster)) {
    if (other->meta.uid == self.meta.uid) continue;
    const std::string others = slurm_node_set_name(*other);
    out.nodeset_names.insert(others);
    Rival found = rival(workers_of, self, *other);
    if (found.claims_hosts) add_claims(caches, *other, found);
    if (!found.nodes.empty() || found.reserved > 0) out.rivals.push_back(std::move(found));
    if (others != name) continue;
    Precedence theirs = precedence(workers_of, *other);
    if (!(theirs < first)) continue;
    out.namesake = other->meta.name;
    first = std::move(theirs);
  }
}

bool owned_by(const kube::PodRecord& pod, const std::string& uid) {
  const kube::OwnerReference* owner = pod.meta.controller_owner();
  return owner != nullptr && owner->uid == uid;
}

/// True if the pod has no owner, or if the owner is an earlier NodeSet of our name. Such a NodeSet is gone, because two
/// NodeSets of one name cannot exist at once.
bool without_owner(const kube::PodRecord& pod, const kube::ObjectMeta& nodeset) {
  const kube::OwnerReference* owner = pod.meta.controller_owner();
  if (owner == nullptr) return true;
  return owner->kind == resources::kNodeSet.kind && owner->name == nodeset.name && owner->uid != nodeset.uid;
}

/// Reads PersistentVolumeClaims of other owners that have the name of one of our claims. The API server has refused to create
/// our claim because the name is taken.
void read_taken_claims(kube::Recorder& recorder, Observed& out) {
  for (auto it = out.outcomes.lower_bound(kCreateClaim); it != out.outcomes.end() && it->first.is(kCreateClaim); ++it) {
    if (!it->second.error || it->second.error->code != core::ErrorCode::kAlreadyExists) continue;
    const std::string name = it->first.name.substr(out.meta().ns.size() + 1);
    if (out.claims.contains(name)) continue;
    const auto found = recorder.object(kube::resources::kPersistentVolumeClaim, {out.meta().ns, name});
    if (found.record != nullptr) out.claims.emplace(name, found.record);
  }
}

/// Reads the Secrets that workers with sshd mount: the host keys and sssd.conf.
void read_ssh(kube::Recorder& recorder, Observed& observed) {
  const api::NodeSetSpec& spec = observed.nodeset.spec;
  if (!has_sshd(spec)) return;
  const kube::Key key{observed.meta().ns, worker_ssh_host_keys_name(observed.meta().name)};
  const kube::Named<kube::SecretRecord> host_keys = recorder.secret(key);
  observed.host_keys = host_keys.presence;
  if (std::optional<Problem> problem = host_keys_problem(host_keys, key)) observed.missing.push_back(*std::move(problem));
  const std::optional<api::SecretKeySelector>& ref = spec.ssh->sssd_conf_ref;
  if (!ref || ref->name.empty()) return;
  const SecretFacts conf = read_key(recorder, key.ns, {.secret = ref->name, .key = ref->key});
  std::optional<Problem> problem = key_problem(conf, key.ns, "spec.ssh.sssdConfRef");
  if (problem && problem->wrong()) observed.missing.push_back(*std::move(problem));
}

}  // namespace

std::optional<KubeNode> NodeSetController::kube_node(const std::string& name, const Observed& observed) const {
  // If the operator is not allowed to read Kubernetes nodes, it knows nothing about this node. Assume that the node exists and
  // is in service.
  if (!caches_.reads_nodes) return KubeNode{.unschedulable = false, .cordon_reason = "", .ready = true, .known = false};
  const auto node = caches_.nodes.find({"", name});
  if (!node) return {};
  KubeNode out{node->unschedulable, std::string(node->meta.annotation(api::kAnnotationNodeCordonReason)), node->ready};
  for (const kube::Taint& taint : node->taints) {
    if (std::ranges::find(options_.drain_taints, taint.key) != options_.drain_taints.end()) out.goes = taint.key;
  }
  for (const std::string& type : options_.propagated_conditions) {
    for (const kube::PodCondition& trouble : node->troubles) {
      if (trouble.type == type)
        out.troubles += fmt::format("{}({}: {})", out.troubles.empty() ? "" : "; ", trouble.reason, trouble.message);
    }
  }
  out.topology = node->meta.annotation(api::kAnnotationTopologySpec);
  if (observed.controller && observed.controller->topology) {
    out.place = topology_of(*observed.controller->topology, node->meta);
    out.lacks = missing_label(*observed.controller->topology, node->meta);
  }
  out.features = node_features(node->meta, observed.nodeset.spec.node_feature_labels);
  return out;
}

void NodeSetController::note_end(const kube::PodRecord& gone) {
  if (!has_ended(gone)) return;
  const kube::OwnerReference* owner = gone.meta.controller_owner();
  const auto seen = owner == nullptr ? seen_.end() : seen_.find({gone.meta.ns, owner->name});
  if (seen == seen_.end()) return;
  const auto worker = seen->second.workers.find(gone.meta.uid);
  if (worker != seen->second.workers.end()) worker->second.ended = true;
}

std::shared_ptr<const Observed> NodeSetController::observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                                 const run::Observation& context) {
  const kube::ObjectPtr object = caches_.nodesets.find(key);
  if (object == nullptr) {
    seen_.erase(key);
    return std::make_shared<Observed>();
  }

  auto out = std::make_shared<Observed>();
  out->now = context.now;
  out->mono = context.mono;
  out->outcomes = context.outcomes;
  out->object = object;
  out->cluster_domain = options_.cluster_domain;
  out->worker_priority_class = options_.worker_priority_class;
  out->invalid = read_object(*object, out->nodeset);

  const api::NodeSetSpec& spec = out->nodeset.spec;
  out->missing =
      missing_objects(recorder, key.ns, spec.pod_template, {{"spec.slurmd", spec.slurmd}, {"spec.logfile", spec.logfile}});
  read_ssh(recorder, *out);

  const std::string controller = core::get_string(object->body, {"spec", "controllerRef", "name"});
  out->nodeset.spec.controller_ref.name = controller;
  out->newer = newer_than_slurmctld("spec.slurmd.image", core::get_string(spec.slurmd, {"image"}, kDefaultSlurmdImage),
                                    caches_.config_maps.find({key.ns, config_map_name(controller)}).get());
  const slurm::ClusterKey cluster = cluster_key(key.ns, controller);
  out->controller = view_controller(caches_, {key.ns, controller}, recorder, out->controller_error);
  if (const kube::ObjectPtr found = caches_.controllers.find({key.ns, controller})) out->stopped = stops_deletions(found->meta);
  out->partition_refusal = find_partition_refusal(caches_, key, spec);
  look_at_others(caches_, cluster, *out);
  out->snapshot = wiring_.snapshot(cluster);
  out->doubt = doubt(cluster, *out);

  for (const kube::PodPtr& pod : caches_.pods.by_index(kIndexInstance, instance_key(key.ns, kAppWorker, key.name))) {
    if (without_owner(*pod, object->meta) && place_of(*pod, key.name)) {
      // If the pod's label names another cluster, the pod's slurmd registers in that cluster, and our Slurm does not know its
      // jobs. So the operator does not change the pod.
      (pod->meta.label(api::kLabelCluster) == controller ? out->orphans : out->unmanaged).push_back(pod);
      continue;
    }
    if (!owned_by(*pod, object->meta.uid)) continue;
    out->pods.push_back(pod);
    if (pod->node_name.empty() || out->nodes.contains(pod->node_name)) continue;
    if (std::optional<KubeNode> node = kube_node(pod->node_name, *out)) out->nodes.emplace(pod->node_name, std::move(*node));
  }
  for (const auto& [ordinal, name] : out->nodeset.status.ordinal_to_node) {
    if (out->nodes.contains(name)) continue;
    if (std::optional<KubeNode> node = kube_node(name, *out)) out->nodes.emplace(name, std::move(*node));
  }
  for (const kube::PodPtr& pod : caches_.pods.by_index(kIndexOwner, object->meta.uid)) {
    if (pod->meta.label(api::kLabelInstance) != key.name) out->unmanaged.push_back(pod);
  }
  for (const kube::ObjectPtr& claim : caches_.claims.by_index(kIndexInstance, instance_key(key.ns, kAppWorker, key.name)))
    out->claims.emplace(claim->meta.name, claim);
  read_taken_claims(recorder, *out);
  if (uses_host_network(out->nodeset.spec)) {
    for (const kube::PodPtr& pod : caches_.pods.by_index(kIndexCluster, cluster)) {
      if (!owned_by(*pod, object->meta.uid)) out->other_workers.insert(slurm_node_name(*pod));
    }
  }
  out->strays = find_strays(*out);
  Seen& seen = seen_[key];
  seen.look(*out);
  seen.note_claims(*out, context.facts);
  seen.note_reservations(*out, context.facts);
  seen.note_template(context.facts);
  for (auto& [node, pod] : seen.gone) pod.host_gone = pod.placed && !kube_node(pod.kube_node, *out);
  out->seen = seen;
  out->reads_kube_nodes = caches_.reads_nodes;
  if (out->by_host() && caches_.reads_nodes) {
    const KubeNodes nodes = caches_.nodes.all();
    out->no_kube_nodes = nodes.empty();
    out->hosts = find_hosts(out->nodeset.spec, nodes);
    out->lost_hosts = find_lost_hosts(*out, [this](const std::string& name) {
      return caches_.nodes.find({"", name}) != nullptr;
    });
  }
  out->revisions = caches_.controller_revisions.by_index(kIndexOwner, object->meta.uid);
  for (const kube::ObjectPtr& left :
       caches_.controller_revisions.by_index(kIndexInstance, instance_key(key.ns, kAppWorker, key.name))) {
    out->revisions.push_back(left);
  }
  conclude(*out, context.facts, context.observing);
  return out;
}

std::string NodeSetController::doubt(const slurm::ClusterKey& cluster, const Observed& observed) {
  if (observed.snapshot == nullptr || !observed.controller) return "";
  if (observed.snapshot->other_cluster) return observed.snapshot->error;
  auto& [round, text] = doubts_[cluster];
  if (round != observed.snapshot->round || round == 0) {
    round = observed.snapshot->round;
    text = doubt_of(caches_.pods.by_index(kIndexCluster, cluster), *observed.snapshot, observed.controller->state_since);
  }
  return text;
}

std::string NodeSetController::share(const kube::Key& key) const {
  const kube::ObjectPtr object = caches_.nodesets.find(key);
  return object ? cluster_key(key.ns, core::get_string(object->body, {"spec", "controllerRef", "name"})) : "";
}

}  // namespace op::nodeset
