// Declares what the nodes controller reads, what wakes it, and the rights that it needs.
#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "bridge/common/names.hpp"
#include "bridge/common/states.hpp"
#include "bridge/nodes/observe.hpp"
#include "bridge/nodes/plan.hpp"
#include "bridge/nodes/taints.hpp"

namespace bridge::nodes {
namespace {

using kube::SchedulingNodeRecord;
using kube::SchedulingPodRecord;

kube::Key key_of_name(std::string name) {
  return {"", std::move(name)};
}

const kube::PodCondition* condition_of(const SchedulingNodeRecord& node) {
  const auto it = std::ranges::find(node.conditions, kConditionNode, &kube::PodCondition::type);
  return it == node.conditions.end() ? nullptr : &*it;
}

bool matters(const SchedulingNodeRecord& before, const SchedulingNodeRecord& after) {
  const kube::PodCondition* had = condition_of(before);
  const kube::PodCondition* has = condition_of(after);
  return before.ready != after.ready || before.unschedulable != after.unschedulable || before.taints != after.taints ||
         before.meta.labels != after.meta.labels || before.meta.annotations != after.meta.annotations ||
         before.allocatable != after.allocatable || before.internal_ip != after.internal_ip ||
         before.meta.terminating() != after.meta.terminating() || (had == nullptr) != (has == nullptr) ||
         (had != nullptr && *had != *has);
}

/// Reports whether a change of the Slurm node can change the plan. While a node drains, changes of its jobs also can.
bool matters(const slurm::Node* before, const slurm::Node* now) {
  if (before == nullptr || now == nullptr || now->state.has("DRAIN")) return true;
  const auto service = [](const slurm::Node& node) {
    return std::tuple(node.state.has("DRAIN"), node.state.has("FAIL"), node.state.base == "DOWN", node.state.has("EXTERNAL"),
                      is_unanswered(node));
  };
  return service(*before) != service(*now) || before->reason != now->reason || before->features != now->features ||
         before->active_features != now->active_features || before->partitions != now->partitions || before->gres != now->gres;
}

}  // namespace

NodesController::NodesController(slinky::Wiring& wiring, Settings settings)
    : TypedController(nodes::plan),
      wiring_(wiring),
      caches_(wiring),
      settings_(std::make_shared<const Settings>(std::move(settings))) {
  wiring.run(*this);
  wiring.rights.add(kube::resources::kNode, {"patch"});
  wiring.rights.add(kube::resources::kNode, {"patch"}, "status");
  // The UID of the Namespace kube-system identifies the Kubernetes cluster.
  wiring.reads(kube::resources::kNamespace);

  caches_.nodes.listen([this](const HostPtr& before, const HostPtr& after) { follow_host(before, after); });
  wiring.wakes<SchedulingNodeRecord>(
      *this, caches_.nodes,
      [](const SchedulingNodeRecord& node) { return slinky::Keys{key_of_name(slurm_name_of(node.meta))}; },
      [](const SchedulingNodeRecord& before, const SchedulingNodeRecord& after) { return matters(before, after); });
  wiring.wakes<SchedulingPodRecord>(
      *this, caches_.pods,
      [this](const SchedulingPodRecord& pod) -> slinky::Keys {
        const auto node = caches_.nodes.find({"", pod.node_name.empty() ? pod.pinned_to : pod.node_name});
        const bool matters = node != nullptr && (!placed_for(pod).empty() || !node->meta.annotation(kAnnotationEffect).empty());
        return matters ? slinky::Keys{key_of_name(slurm_name_of(node->meta))} : slinky::Keys{};
      },
      [](const SchedulingPodRecord& before, const SchedulingPodRecord& after) {
        return before.node_name != after.node_name || before.phase != after.phase || before.pinned_to != after.pinned_to;
      });
  wiring.wakes_on_slurm(name(), [this](const slurm::Change& change, const kube::Key&) { return woken_by(change); });
}

std::vector<std::string> NodesController::left() {
  std::vector<std::string> out;
  for (const auto& node : caches_.nodes.all()) {
    if (is_tainted(*node)) out.push_back("node " + node->meta.name);
  }
  const slurm::SnapshotPtr snapshot = wiring_.snapshot(settings_->cluster);
  if (snapshot == nullptr) return out;
  for (const auto& [name, node] : snapshot->nodes) {
    if (is_left(*node)) out.push_back("Slurm node " + name);
  }
  return out;
}

slinky::Keys NodesController::all_keys() {
  slinky::Keys out;
  for (const auto& [name, claimants] : hosts()) out.push_back(key_of_name(name));
  return out;
}

slinky::Keys NodesController::woken_by(const slurm::Change& change) {
  if (change.cluster != settings_->cluster) return {};
  std::set<kube::Key> out;
  for (const std::string& name : change.nodes) {
    const slurm::Node* before = change.before->node(name);
    const slurm::Node* now = change.now->node(name);
    // If a node has a slurmd and a kubelet, changes of its jobs can change the plan.
    const bool hybrid = now != nullptr && !now->state.has("EXTERNAL") && hosts().contains(name);
    if (hybrid || matters(before, now) || lists_jobs(*now)) out.insert(key_of_name(name));
  }
  if (change.health || change.partitions) {
    for (kube::Key& key : all_keys()) out.insert(std::move(key));
    for (const auto& [name, node] : change.now->nodes) {
      if (slurm::mark_of(*node) || is_left(*node)) out.insert(key_of_name(name));
    }
  }
  return {out.begin(), out.end()};
}

}  // namespace bridge::nodes
