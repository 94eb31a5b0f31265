// Declares what the jobs controller reads, what wakes it, and the rights that it needs.
#include <algorithm>
#include <set>
#include <utility>

#include "bridge/common/groups.hpp"
#include "bridge/common/names.hpp"
#include "bridge/common/states.hpp"
#include "bridge/jobs/observe.hpp"
#include "bridge/jobs/plan.hpp"

namespace bridge::jobs {
namespace {

using Node = kube::SchedulingNodeRecord;

}  // namespace

JobsController::JobsController(slinky::Wiring& wiring, Settings settings)
    : TypedController(jobs::plan), observer_(wiring, std::move(settings)) {
  wiring.run(*this);
  wiring.rights.add(kube::resources::kPod, {"patch", "delete"});
  wiring.rights.add(kube::resources::kPod, {"patch"}, "status");
  wiring.rights.add(kube::resources::kPod, {"create"}, "eviction");

  wiring.wakes<Pod>(*this, observer_.caches.pods, [this](const Pod& pod) -> slinky::Keys {
    return concerns(pod) ? slinky::Keys{pod.meta.key()} : slinky::Keys{};
  });
  observer_.caches.pods.listen([this](const auto& before, const auto& after) {
    if (before && after) note(*before, *after);
  });
  wiring.wakes<Node>(
      *this, observer_.caches.nodes, [this](const Node&) { return keys(true); }, fits_differently);
  wiring.wakes<Node>(
      *this, observer_.caches.nodes, [this](const Node& node) { return placed_on(node.meta.name); },
      [](const Node& before, const Node& after) { return before.ready != after.ready; });
  wiring.wakes_on_slurm(name(), [this](const slurm::Change& change, const kube::Key&) { return woken_by(change); });
}

void JobsController::note(const Pod& before, const Pod& after) const {
  if (!serves(after)) return;
  const std::vector<JobId> placed = placed_for(after);
  if (on_placed && !placed.empty() && placed_for(before).empty()) on_placed(placed.front());
  if (on_told_to_end && is_told_to_end(after) && !is_told_to_end(before))
    on_told_to_end(after.condition(kConditionEnded)->reason);
}

bool JobsController::serves(const Pod& pod) const {
  if (vouches_for(*observer_.settings, observer_.table, pod)) return true;
  const auto has_job = [&](const run::Key& key) {
    return std::ranges::any_of(observer_.table.of(key), [&](const JobTable::Row* row) { return row->is_for(pod); });
  };
  const auto group = group_of(pod.meta);
  return has_job(pod.meta.key()) || (group && has_job(*group));
}

Counts JobsController::counts(core::WallTime now) const {
  Counts out;
  const slurm::SnapshotPtr snapshot = observer_.snapshot();
  const bool known = snapshot != nullptr && snapshot->complete();
  std::set<std::string> uids;
  for (const auto& pod : observer_.caches.pods.all()) {
    uids.insert(pod->meta.uid);
    const PodPhase phase = phase_of(*pod);
    if (phase == PodPhase::kEnded || phase == PodPhase::kForeign || !serves(*pod)) continue;
    out.waiting += phase == PodPhase::kWaiting ? 1 : 0;
    if (phase != PodPhase::kPlaced && phase != PodPhase::kBound) continue;
    ++out.placed;
    const auto is_there = [&](const JobId& job) {
      const JobTable::Row* row = observer_.table.row(job.number);
      return row != nullptr && row->is_for(*pod);
    };
    if (known && std::ranges::none_of(placed_for(*pod), is_there)) ++out.missing;
  }
  if (!known) return out;
  for (const auto& [number, row] : observer_.table.rows()) {
    const JobPhase phase = phase_of(*row.job);
    if (row.mark.instance != observer_.installation || phase == JobPhase::kEnded) continue;
    const bool has_pod = std::ranges::any_of(row.uids, [&](const std::string& uid) { return uids.contains(uid); }) ||
                         std::ranges::any_of(observer_.caches.pods.by_index(kIndexJob, std::to_string(number)),
                                             [&](const PodPtr& pod) { return row.is_for(*pod); });
    if (!has_pod) ++out.orphans;
    const core::WallTime submitted{std::chrono::seconds{id_of(*row.job).submitted}};
    if (phase == JobPhase::kWaits) out.oldest = std::max(out.oldest, now - submitted);
  }
  return out;
}

bool JobsController::concerns(const Pod& pod) const {
  if (!observer_.table.of(pod.meta.key()).empty()) return true;
  const PodPhase phase = phase_of(pod);
  const bool of_bridge = (phase != PodPhase::kForeign && phase != PodPhase::kEnded) || !placed_for(pod).empty();
  return (of_bridge || is_freed_unnoticed(pod)) && !in_group(pod);
}

slinky::Keys JobsController::keys(bool waiting) const {
  slinky::Keys out;
  for (const auto& pod : observer_.caches.pods.all()) {
    if ((!waiting || phase_of(*pod) == PodPhase::kWaiting) && concerns(*pod)) out.push_back(pod->meta.key());
  }
  return out;
}

slinky::Keys JobsController::placed_on(const std::string& node) const {
  slinky::Keys out;
  for (const auto& pod : observer_.caches.pods.by_index(slinky::kIndexNode, node)) {
    if (phase_of(*pod) == PodPhase::kBound && !in_group(*pod)) out.push_back(pod->meta.key());
  }
  return out;
}

std::vector<std::string> JobsController::left() const {
  std::vector<std::string> out;
  for (const auto& pod : observer_.caches.pods.all()) {
    const PodPhase phase = phase_of(*pod);
    if (phase == PodPhase::kEnded || phase == PodPhase::kForeign) continue;
    if (serves(*pod)) out.push_back("pod " + pod->meta.key().str());
  }
  for (const auto& [number, row] : observer_.table.rows()) {
    if (row.mark.instance == observer_.installation && phase_of(*row.job) != JobPhase::kEnded)
      out.push_back("job " + std::to_string(number));
  }
  return out;
}

slinky::Keys JobsController::woken_by(const slurm::Change& change) {
  if (change.cluster != observer_.settings->cluster) return {};
  std::set<kube::Key> out;
  const auto add = [&](const slinky::Keys& keys) { out.insert(keys.begin(), keys.end()); };
  add(observer_.changed(change));
  if (change.health) {
    add(keys(false));
    // Pods might have been deleted while Slurm did not answer.
    add(observer_.table.keys());
  } else if (places_changed(change)) {
    add(keys(true));
  }
  std::erase_if(out, is_group);
  return {out.begin(), out.end()};
}

}  // namespace bridge::jobs
