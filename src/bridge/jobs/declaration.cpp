// What the jobs controller reads, what wakes it, and the rights that it needs.
#include <algorithm>
#include <set>
#include <utility>

#include "bridge/common/names.hpp"
#include "bridge/jobs/observe.hpp"
#include "bridge/jobs/plan.hpp"
#include "bridge/jobs/states.hpp"

namespace bridge::jobs {
namespace {

using kube::SchedulingNodeRecord;
using kube::SchedulingPodRecord;

std::vector<std::string> node_of_pod(const SchedulingPodRecord& pod) {
  return pod.node_name.empty() ? std::vector<std::string>{} : std::vector{pod.node_name};
}

const slinky::CacheOf<SchedulingPodRecord> kAllPods{kube::resources::kPod, "", {{slinky::kIndexNode, node_of_pod}}};
const slinky::CacheOf<SchedulingNodeRecord> kAllNodes{kube::resources::kNode};

bool fits_differently(const SchedulingNodeRecord& before, const SchedulingNodeRecord& after) {
  return before.unschedulable != after.unschedulable || before.taints != after.taints ||
         before.meta.labels != after.meta.labels || before.allocatable != after.allocatable ||
         before.meta.terminating() != after.meta.terminating();
}

/// Reports whether a node was added or removed, or is in other partitions.
bool places_changed(const slurm::Change& change) {
  if (change.partitions) return true;
  return std::ranges::any_of(change.nodes, [&](const std::string& name) {
    const slurm::Node* before = change.before->node(name);
    const slurm::Node* now = change.now->node(name);
    return before == nullptr || now == nullptr || before->partitions != now->partitions;
  });
}

}  // namespace

Caches::Caches(slinky::Wiring& wiring) : pods(wiring.cache(kAllPods)), nodes(wiring.cache(kAllNodes)) {}

JobsController::JobsController(slinky::Wiring& wiring, Settings settings)
    : TypedController(jobs::plan),
      wiring_(wiring),
      caches_(wiring),
      settings_(std::make_shared<const Settings>(std::move(settings))) {
  wiring.run(*this);
  wiring.rights.add(kube::resources::kPod, {"patch", "delete"});
  wiring.rights.add(kube::resources::kPod, {"patch"}, "status");
  wiring.rights.add(kube::resources::kPod, {"create"}, "eviction");
  // The UID of kube-system is that of the Kubernetes cluster.
  wiring.reads(kube::resources::kNamespace);

  wiring.wakes<SchedulingPodRecord>(*this, caches_.pods, [this](const SchedulingPodRecord& pod) -> slinky::Keys {
    return concerns(pod) ? slinky::Keys{pod.meta.key()} : slinky::Keys{};
  });
  caches_.pods.listen([this](const auto& before, const auto& after) {
    if (before && after) note(*before, *after);
  });
  caches_.nodes.listen([this](const auto&, const auto&) { hosts_ = nullptr; });
  wiring.wakes<SchedulingNodeRecord>(
      *this, caches_.nodes, [this](const SchedulingNodeRecord&) { return keys(true); }, fits_differently);
  wiring.wakes<SchedulingNodeRecord>(
      *this, caches_.nodes, [this](const SchedulingNodeRecord& node) { return placed_on(node.meta.name); },
      [](const SchedulingNodeRecord& before, const SchedulingNodeRecord& after) { return before.ready != after.ready; });
  wiring.wakes_on_slurm(name(), [this](const slurm::Change& change, const kube::Key&) { return woken_by(change); });
}

void JobsController::note(const SchedulingPodRecord& before, const SchedulingPodRecord& after) const {
  const std::vector<JobId> placed = placed_for(after);
  if (on_placed && !placed.empty() && placed_for(before).empty()) on_placed(placed.front());
  if (on_told_to_end && is_told_to_end(after) && !is_told_to_end(before))
    on_told_to_end(after.condition(kConditionEnded)->reason);
}

Counts JobsController::counts(core::WallTime now) const {
  Counts out;
  const slurm::SnapshotPtr snapshot = wiring_.snapshot(settings_->cluster);
  const bool known = snapshot != nullptr && snapshot->complete();
  std::set<std::string> uids;
  for (const auto& pod : caches_.pods.all()) {
    uids.insert(pod->meta.uid);
    const PodPhase phase = phase_of(*pod);
    out.waiting += phase == PodPhase::kWaiting ? 1 : 0;
    if (phase != PodPhase::kPlaced && phase != PodPhase::kBound) continue;
    ++out.placed;
    const auto is_there = [&](const JobId& job) { return table_.row(job.number) != nullptr; };
    if (known && std::ranges::none_of(placed_for(*pod), is_there)) ++out.missing;
  }
  if (!known) return out;
  for (const auto& [number, row] : table_.rows()) {
    const JobPhase phase = phase_of(*row.job);
    if (row.mark.instance != installation_ || phase == JobPhase::kEnded) continue;
    if (!uids.contains(submission_of(row.mark).pod_uid)) ++out.orphans;
    const core::WallTime submitted{std::chrono::seconds{id_of(*row.job).submitted}};
    if (phase == JobPhase::kWaits) out.oldest = std::max(out.oldest, now - submitted);
  }
  return out;
}

bool JobsController::concerns(const kube::SchedulingPodRecord& pod) const {
  const PodPhase phase = phase_of(pod);
  if (phase != PodPhase::kForeign && phase != PodPhase::kEnded) return true;
  return !placed_for(pod).empty() || !table_.of(pod.meta.key()).empty();
}

slinky::Keys JobsController::keys(bool waiting) const {
  slinky::Keys out;
  for (const auto& pod : caches_.pods.all()) {
    if (waiting ? phase_of(*pod) == PodPhase::kWaiting : concerns(*pod)) out.push_back(pod->meta.key());
  }
  return out;
}

slinky::Keys JobsController::placed_on(const std::string& node) const {
  slinky::Keys out;
  for (const auto& pod : caches_.pods.by_index(slinky::kIndexNode, node)) {
    if (phase_of(*pod) == PodPhase::kBound) out.push_back(pod->meta.key());
  }
  return out;
}

slinky::Keys JobsController::woken_by(const slurm::Change& change) {
  if (change.cluster != settings_->cluster) return {};
  std::set<kube::Key> out;
  const auto add_pods = [&](std::int64_t job) {
    if (const JobTable::Row* row = table_.row(job)) out.insert(row->pods.begin(), row->pods.end());
  };
  std::ranges::for_each(change.jobs, add_pods);
  table_.read(change.now);
  std::ranges::for_each(change.jobs, add_pods);
  const auto add = [&](const slinky::Keys& keys) { out.insert(keys.begin(), keys.end()); };
  if (change.health) {
    add(keys(false));
    // Pods may have gone while Slurm did not answer.
    add(table_.pods());
  } else if (places_changed(change)) {
    add(keys(true));
  }
  return {out.begin(), out.end()};
}

}  // namespace bridge::jobs
