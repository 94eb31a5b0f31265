// What the NodeSet controller reads, what wakes it, and the rights that it needs.
#include <set>
#include <utility>

#include "api/well_known.hpp"
#include "cluster/config_map.hpp"
#include "operator/common/watches.hpp"
#include "operator/nodeset/observe.hpp"

namespace op::nodeset {

using kube::NodeRecord;
using kube::Object;
using kube::PodRecord;

Caches::Caches(Wiring& wiring)
    : nodesets(wiring.cache(caches::kNodeSets)),
      controllers(wiring.cache(caches::kControllers)),
      config_maps(wiring.cache(caches::kConfigMaps)),
      controller_revisions(wiring.cache(caches::kControllerRevisions)),
      pods(wiring.cache(caches::kPods)),
      nodes(wiring.cache(caches::kNodes)) {}

bool Caches::synced() const {
  return nodesets.synced() && controllers.synced() && config_maps.synced() && controller_revisions.synced() && pods.synced() &&
         nodes.synced();
}

NodeSetController::NodeSetController(Wiring& wiring, Options options)
    : wiring_(wiring), caches_(wiring), options_(std::move(options)) {
  wiring.run(*this);
  wiring.reconciles(resources::kNodeSet);
  wiring.makes(kube::resources::kPod);
  wiring.rights.add(kube::resources::kPod, {"patch"}, "status");
  wiring.makes(kube::resources::kControllerRevision);
  // Keys, and what pod templates name.
  wiring.reads(kube::resources::kSecret);
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
  // Partitions that slurmctld refuses are told by their NodeSets.
  wiring.wakes<Object>(
      *this, caches_.config_maps,
      [of_controller](const Object& object) -> Keys {
        const kube::OwnerReference* owner = object.meta.controller_owner();
        if (owner == nullptr || owner->kind != resources::kController.kind) return {};
        return of_controller({object.meta.ns, owner->name});
      },
      [](const Object& before, const Object& after) { return read_left_out(before) != read_left_out(after); });
  wiring.wakes<PodRecord>(*this, caches_.pods, kube::controller_owner<PodRecord>(resources::kNodeSet.kind));
  // The end of an orphan makes room for its successor.
  wiring.wakes<PodRecord>(*this, caches_.pods, [this](const PodRecord& pod) -> Keys {
    if (pod.meta.controller_owner() != nullptr || pod.meta.label(api::kLabelName) != kAppWorker) return {};
    const kube::Key key{pod.meta.ns, std::string(pod.meta.label(api::kLabelInstance))};
    return caches_.nodesets.find(key) == nullptr ? Keys{} : Keys{key};
  });
  wiring.wakes<Object>(*this, caches_.controller_revisions, kube::controller_owner<Object>(resources::kNodeSet.kind));
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
        return before.unschedulable != after.unschedulable || before.ready != after.ready ||
               before.meta.annotations != after.meta.annotations;
      });

  wiring.wakes_on_slurm(name(), [this](const slurm::Change& change) -> Keys {
    if (!change.health && !change.partitions && change.nodes.empty()) return {};
    const std::vector<kube::ObjectPtr> nodesets = caches_.nodesets.by_index(kIndexController, change.cluster);
    const Claims claims = claims_of(change, nodesets);
    std::set<kube::Key> woken(claims.nodesets.begin(), claims.nodesets.end());
    const auto has = [](const slurm::SnapshotPtr& snapshot, const std::string& partition) {
      return snapshot != nullptr && snapshot->partitions.contains(partition);
    };
    for (const kube::ObjectPtr& object : nodesets) {
      const std::string name = slurm_node_set_name(*object);
      // Its partition came or went; and a node that does not say whose it is may be anybody's.
      if (change.health || claims.unclaimed || has(change.before, name) != has(change.now, name)) {
        woken.insert(object->meta.key());
      }
    }
    return {woken.begin(), woken.end()};
  });
}

}  // namespace op::nodeset
