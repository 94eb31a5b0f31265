// Declares what the NodeSet controller reads, what wakes it, and the rights that it needs.
#include <algorithm>
#include <set>
#include <utility>

#include "api/well_known.hpp"
#include "operator/common/slinky.hpp"
#include "operator/common/watches.hpp"
#include "operator/nodeset/daemon_nodes.hpp"
#include "operator/nodeset/observe.hpp"
#include "operator/nodeset/plan.hpp"
#include "slinky/config_map.hpp"
#include "slinky/releases.hpp"

namespace op::nodeset {
namespace {

/// True if a worker of the NodeSet is pinned to the node.
bool pins_to(const kube::Object& nodeset, const std::string& node) {
  const core::Json* pins = core::find(nodeset.body, {"status", "ordinalToNode"});
  return pins != nullptr && pins->is_object() && std::ranges::find(*pins, core::Json(node)) != pins->end();
}

/// Returns the loaded and the offered topology.yaml.
std::pair<std::string, std::string> topology_of_map(const kube::Object& config_map) {
  return {loaded_file(config_map, kTopologyYaml), core::get_string(config_map.body, {"data", kTopologyYaml})};
}

}  // namespace

using kube::NodeRecord;
using kube::Object;
using kube::PodRecord;

Caches::Caches(Wiring& wiring)
    : nodesets(wiring.cache(caches::kNodeSets)),
      controllers(wiring.cache(caches::kControllers)),
      config_maps(wiring.cache(caches::kConfigMaps)),
      controller_revisions(wiring.cache(caches::kControllerRevisions)),
      claims(wiring.cache(caches::kClaims)),
      pods(wiring.cache(caches::kPods)),
      nodes(wiring.cache(caches::kNodes)),
      reads_nodes(wiring.reads_nodes()) {}

NodeSetController::NodeSetController(Wiring& wiring, Options options)
    : TypedController(nodeset::plan), wiring_(wiring), caches_(wiring), options_(std::move(options)) {
  wiring.run(*this);
  wiring.reconciles(resources::kNodeSet);
  wiring.makes(kube::resources::kPod);
  wiring.rights.add(kube::resources::kPod, {"patch"}, "status");
  wiring.makes(kube::resources::kControllerRevision);
  wiring.makes(kube::resources::kPersistentVolumeClaim);
  // Secrets are created for host keys.
  wiring.makes(kube::resources::kSecret);
  // ConfigMaps are read because pod templates name them.
  wiring.reads(kube::resources::kConfigMap);

  caches_.pods.listen([this](const kube::PodPtr& before, const kube::PodPtr& after) {
    if (after == nullptr) note_end(*before);
  });

  const auto of_controller = [this](const kube::Key& key) {
    return keys_of(caches_.nodesets.by_index(kIndexController, key.str()));
  };
  wiring.wakes<Object>(*this, caches_.nodesets, kube::self<Object>());
  wiring.wakes<Object>(
      *this, caches_.controllers, [of_controller](const Object& object) { return of_controller(object.meta.key()); },
      [](const Object& before, const Object& after) {
        return intent_changed(before, after) || announces_end(before) != announces_end(after) ||
               stops_deletions(before.meta) != stops_deletions(after.meta);
      });
  // Wakes the NodeSets if the ConfigMap shows a change of: the partitions that slurmctld refuses, the Contain flag, slurmctld's
  // release (workers must not be newer), the user's topology file, or the topology units that slurmctld knows.
  wiring.wakes<Object>(*this, caches_.config_maps, of_owner(of_controller), [](const Object& before, const Object& after) {
    return read_left_out(before) != read_left_out(after) || contains_jobs(before) != contains_jobs(after) ||
           slurmctld_release(&before) != slurmctld_release(&after) || read_places(before) != read_places(after) ||
           topology_of_map(before) != topology_of_map(after);
  });
  wiring.wakes<PodRecord>(*this, caches_.pods, kube::controller_owner<PodRecord>(resources::kNodeSet.kind));
  // When a worker without an owner changes or is gone, wakes the NodeSet that the worker's labels name. It can then create a
  // successor.
  wiring.wakes<PodRecord>(*this, caches_.pods, [this](const PodRecord& pod) -> Keys {
    if (pod.meta.controller_owner() != nullptr || pod.meta.label(api::kLabelName) != kAppWorker) return {};
    const kube::Key key{pod.meta.ns, std::string(pod.meta.label(api::kLabelInstance))};
    return caches_.nodesets.find(key) == nullptr ? Keys{} : Keys{key};
  });
  wiring.wakes<Object>(*this, caches_.controller_revisions, kube::controller_owner<Object>(resources::kNodeSet.kind));
  wiring.wakes<Object>(*this, caches_.claims, [this](const Object& claim) -> Keys {
    const kube::Key key{claim.meta.ns, std::string(claim.meta.label(api::kLabelInstance))};
    return claim.meta.label(api::kLabelName) == kAppWorker && caches_.nodesets.find(key) != nullptr ? Keys{key} : Keys{};
  });
  wiring.wakes<NodeRecord>(
      *this, caches_.nodes,
      [this](const NodeRecord& node) {
        Keys keys;
        for (const kube::PodPtr& pod : caches_.pods.by_index(kIndexNode, node.meta.name)) {
          const kube::OwnerReference* owner = pod->meta.controller_owner();
          if (owner != nullptr && owner->kind == resources::kNodeSet.kind) keys.push_back({pod->meta.ns, owner->name});
        }
        return keys;
      },
      [](const NodeRecord& before, const NodeRecord& after) {
        return before.unschedulable != after.unschedulable || before.ready != after.ready || before.taints != after.taints ||
               before.troubles != after.troubles || before.meta.annotations != after.meta.annotations ||
               before.meta.labels != after.meta.labels;
      });

  // Wakes the NodeSets with workers pinned to a node that is deleted.
  wiring.wakes<NodeRecord>(
      *this, caches_.nodes,
      [this](const NodeRecord& node) {
        Keys keys;
        for (const kube::ObjectPtr& nodeset : caches_.nodesets.all()) {
          if (pins_to(*nodeset, node.meta.name)) keys.push_back(nodeset->meta.key());
        }
        return keys;
      },
      [](const NodeRecord&, const NodeRecord&) { return false; });

  // Any Kubernetes node might get a worker of a NodeSet with scalingMode DaemonSet, so wakes all such NodeSets.
  wiring.wakes<NodeRecord>(
      *this, caches_.nodes,
      [this](const NodeRecord&) {
        Keys keys;
        for (const kube::ObjectPtr& nodeset : caches_.nodesets.all()) {
          if (core::get_string(nodeset->body, {"spec", "scalingMode"}) == api::to_string(api::ScalingMode::kDaemonSet))
            keys.push_back(nodeset->meta.key());
        }
        return keys;
      },
      matters_to_daemons);

  wiring.wakes_on_slurm(name(), [this](const slurm::Change& change, const kube::Key& cluster) -> Keys {
    if (!change.health && !change.partitions && change.nodes.empty()) return {};
    const std::vector<kube::ObjectPtr> nodesets = caches_.nodesets.by_index(kIndexController, cluster.str());
    const Claims claims = claims_of(change, nodesets);
    std::set<kube::Key> woken(claims.nodesets.begin(), claims.nodesets.end());
    const auto has = [](const slurm::SnapshotPtr& snapshot, const std::string& partition) {
      return snapshot != nullptr && snapshot->partitions.contains(partition);
    };
    for (const kube::ObjectPtr& object : nodesets) {
      const std::string name = slurm_node_set_name(*object);
      // Slurm's health changed, the NodeSet's partition was added or removed, or a node changed that might belong to any
      // NodeSet.
      if (change.health || claims.unclaimed || has(change.before, name) != has(change.now, name)) {
        woken.insert(object->meta.key());
      }
    }
    return {woken.begin(), woken.end()};
  });
}

}  // namespace op::nodeset
