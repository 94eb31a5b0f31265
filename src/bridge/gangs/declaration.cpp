// Declares what the gangs controller reads, what wakes it, and the rights that it needs.
#include <algorithm>
#include <set>
#include <utility>

#include "bridge/common/groups.hpp"
#include "bridge/common/states.hpp"
#include "bridge/gangs/observe.hpp"
#include "bridge/gangs/plan.hpp"

namespace bridge::gangs {
namespace {

using Node = kube::SchedulingNodeRecord;

}  // namespace

GangsController::GangsController(slinky::Wiring& wiring, Settings settings)
    : TypedController(gangs::plan), observer_(wiring, std::move(settings)) {
  wiring.run(*this);
  wiring.rights.add(kube::resources::kPod, {"patch", "delete"});
  wiring.rights.add(kube::resources::kPod, {"patch"}, "status");
  wiring.rights.add(kube::resources::kPod, {"create"}, "eviction");
  // The size of a group is read live, when a job is submitted. PodGroups are not cached, because a cluster might lack this
  // kind.
  for (const char* kind : {"podgroup/", "job/"}) wiring.rights.add(object_of({"", kind}).resource, {"get"});

  const auto key_of_pod = [this](const Pod& pod) -> slinky::Keys {
    const auto key = key_of(pod);
    return key ? slinky::Keys{*key} : slinky::Keys{};
  };
  wiring.wakes<Pod>(*this, observer_.caches.pods, key_of_pod);
  wiring.wakes<Node>(
      *this, observer_.caches.nodes, [this](const Node&) { return keys(true); }, fits_differently);
  wiring.wakes<Node>(
      *this, observer_.caches.nodes,
      [this, key_of_pod](const Node& node) {
        slinky::Keys out;
        for (const auto& pod : observer_.caches.pods.by_index(slinky::kIndexNode, node.meta.name))
          std::ranges::copy(key_of_pod(*pod), std::back_inserter(out));
        return out;
      },
      [](const Node& before, const Node& after) { return before.ready != after.ready; });
  wiring.wakes_on_slurm(name(), [this](const slurm::Change& change, const kube::Key&) { return woken_by(change); });
}

std::optional<run::Key> GangsController::key_of(const Pod& pod) const {
  const PodPhase phase = phase_of(pod);
  const bool of_bridge = (phase != PodPhase::kForeign && phase != PodPhase::kEnded) || !placed_for(pod).empty();
  if (!of_bridge && !is_freed_unnoticed(pod)) return std::nullopt;
  // Users can change the label of the group, so the job for which the pod was placed takes precedence.
  if (const run::Key* placed = observer_.table.placed_group_of(pod)) return *placed;
  return group_of(pod.meta);
}

slinky::Keys GangsController::keys(bool waiting) const {
  std::set<run::Key> out;
  for (const auto& pod : observer_.caches.pods.all()) {
    if (waiting && phase_of(*pod) != PodPhase::kWaiting) continue;
    if (const auto key = key_of(*pod)) out.insert(*key);
  }
  return {out.begin(), out.end()};
}

slinky::Keys GangsController::woken_by(const slurm::Change& change) {
  if (change.cluster != observer_.settings->cluster) return {};
  std::set<run::Key> out;
  const auto add = [&](const slinky::Keys& keys) { out.insert(keys.begin(), keys.end()); };
  add(observer_.changed(change));
  if (change.health) {
    add(keys(false));
    // Pods might have been deleted while Slurm did not answer.
    add(observer_.table.keys());
  } else if (places_changed(change)) {
    add(keys(true));
  }
  std::erase_if(out, [](const run::Key& key) { return !is_group(key); });
  return {out.begin(), out.end()};
}

}  // namespace bridge::gangs
