#include "bridge/common/evidence.hpp"

#include <algorithm>

#include "bridge/common/names.hpp"
#include "bridge/common/states.hpp"

namespace bridge {
namespace {

/// Reports whether the row is a job of this installation that is for the pod.
bool is_ours(const std::string& installation, const kube::SchedulingPodRecord& pod, const JobTable::Row& row) {
  return row.mark.instance == installation && row.is_for(pod);
}

bool is_placed_for(const kube::SchedulingPodRecord& pod, const slurm::OwnJob& job) {
  const std::vector<JobId> placed = placed_for(pod);
  return std::ranges::find(placed, job.id(), &JobId::number) != placed.end();
}

/// Reports whether the API server has this node and the node is not ready.
bool is_not_ready(const core::Json& node, const std::string& name) {
  const core::Json* conditions = core::find(node, {"status", "conditions"});
  if (core::get_string(node, {"metadata", "name"}) != name || conditions == nullptr) return false;
  for (const core::Json& one : *conditions) {
    if (core::get_string(one, {"type"}) == "Ready") return core::get_string(one, {"status"}) != "True";
  }
  return false;
}

}  // namespace

std::optional<PodOver> PodOver::job_ended(const plan::Observing& observing, const slurm::Snapshot& snapshot,
                                          const std::string& installation, const kube::SchedulingPodRecord& pod,
                                          const JobTable::Row& row) {
  const slurm::Job& job = *row.job;
  if (!snapshot.complete() || !is_ours(installation, pod, row) || phase_of(job) != JobPhase::kEnded) return {};
  if (gets_another_job(pod, job)) return {};
  return PodOver(observing, pod, "JobEnded", end_reason(job), "job " + std::to_string(job.id) + " is " + job.state, {});
}

std::optional<PodOver> PodOver::job_gone(const plan::Observing& observing, const slurm::Snapshot& snapshot,
                                         const std::string& installation, const kube::SchedulingPodRecord& pod,
                                         const JobTable& jobs) {
  const std::vector<JobId> placed = placed_for(pod);
  if (!snapshot.fresh(observing.now()) || placed.empty()) return {};
  std::int64_t younger = 0;
  for (const JobId& job : placed) {
    younger = snapshot.jobs.contains(job.number) ? 0 : jobs.younger(installation, job);
    if (younger == 0) return {};
  }
  const std::string number = std::to_string(placed.front().number);
  return PodOver(observing, pod, "JobGone", "Gone",
                 "Slurm does not have job " + number + " any more, but has the younger job " + std::to_string(younger),
                 snapshot.requested_at + snapshot.good_for());
}

std::optional<PodOver> PodOver::job_ends_soon(const plan::Observing& observing, const slurm::Snapshot& snapshot,
                                              const std::string& installation, const kube::SchedulingPodRecord& pod,
                                              const JobTable::Row& row, core::WallTime now) {
  const slurm::Job& job = *row.job;
  const std::optional<core::WallTime> leaves = leaves_at(pod, job);
  if (!snapshot.fresh(observing.now()) || !is_ours(installation, pod, row)) return {};
  if (phase_of(pod) != PodPhase::kBound || !leaves || now < *leaves) return {};
  const bool preempted = job.details->preempted.has_value();
  const std::string seconds = std::to_string(std::chrono::duration_cast<std::chrono::seconds>(pod.grace).count());
  return PodOver(observing, pod, "JobEndsSoon", preempted ? "Preempted" : "TimedOut",
                 "job " + std::to_string(job.id) + " ends at " + core::format_rfc3339(*job.end) +
                     (preempted ? ", preempted by another job" : "") + ", and the pod may take " + seconds + " s to end",
                 snapshot.requested_at + snapshot.good_for());
}

std::optional<PodOver> PodOver::not_bound(const plan::Observing& observing, const kube::SchedulingPodRecord& pod,
                                          core::MonoTime since, core::Duration limit) {
  if (phase_of(pod) != PodPhase::kPlaced || observing.now() - since < limit) return {};
  const kube::PodCondition* scheduled = pod.condition("PodScheduled");
  std::string why = scheduled == nullptr || scheduled->status == "True" ? "" : ": " + scheduled->message;
  return PodOver(observing, pod, kNotBound, std::string(kNotBound), "Kubernetes did not bind the pod to " + pod.pinned_to + why,
                 {});
}

std::optional<Unneeded> Unneeded::pod_ended(const plan::Observing& observing, slurm::OwnJob job,
                                            const kube::SchedulingPodRecord& pod) {
  if (submission_of(job.mark()).root_uid != pod.meta.uid) return {};
  if (phase_of(pod) == PodPhase::kEnded) {
    const std::string code = pod.exit_code ? " with exit code " + std::to_string(*pod.exit_code) : "";
    return Unneeded(observing, "the pod has " + pod.phase + code, std::move(job));
  }
  if (phase_of(pod) == PodPhase::kWaiting && pod.meta.terminating())
    return Unneeded(observing, "the pod was deleted before it started", std::move(job));
  return {};
}

std::optional<Unneeded> Unneeded::pod_gone(const plan::Observing& observing, slurm::OwnJob job, const plan::Fact& look) {
  const bool none = !look.value && look.value.error().code == core::ErrorCode::kNotFound;
  const std::string uid = look.value ? core::get_string(*look.value, {"metadata", "uid"}) : "";
  if (!none && (uid.empty() || uid == submission_of(job.mark()).root_uid)) return {};
  return Unneeded(observing, "the pod is gone", std::move(job));
}

std::optional<Unneeded> Unneeded::pod_freed(const plan::Observing& observing, slurm::OwnJob job,
                                            const kube::SchedulingPodRecord& pod) {
  if (submission_of(job.mark()).root_uid != pod.meta.uid || phase_of(pod) != PodPhase::kForeign) return {};
  return Unneeded(observing, "somebody removed the gate of the pod", std::move(job));
}

std::optional<Unneeded> Unneeded::node_silent(const plan::Observing& observing, slurm::OwnJob job,
                                              const kube::SchedulingPodRecord& pod, core::MonoTime since, core::Duration limit,
                                              const plan::Fact& look) {
  if (!is_placed_for(pod, job) || phase_of(pod) != PodPhase::kBound) return {};
  if (observing.now() - since < limit || !look.value || !is_not_ready(*look.value, pod.node_name)) return {};
  const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(limit).count();
  return Unneeded(observing,
                  "node " + pod.node_name + " has not been ready for " + std::to_string(minutes) +
                      " min: the job of the pod is released, and the pod may still run there",
                  std::move(job), true);
}

std::optional<Unneeded> Unneeded::replaceable(const plan::Observing& observing, slurm::OwnJob job,
                                              const kube::SchedulingPodRecord& pod) {
  if (submission_of(job.mark()).root_uid != pod.meta.uid || phase_of(pod) != PodPhase::kWaiting) return {};
  return Unneeded(observing, "nothing runs for the job yet", std::move(job));
}

std::optional<Unneeded> Unneeded::second(const plan::Observing& observing, slurm::OwnJob job, std::int64_t kept) {
  if (job.id() == kept) return {};
  return Unneeded(observing, "the pod has job " + std::to_string(kept), std::move(job));
}

bool runs_for(const core::Json& pod, const JobId& job) {
  const std::string phase = core::get_string(pod, {"status", "phase"});
  const core::Json* tolerations = core::find(pod, {"spec", "tolerations"});
  if (phase == "Succeeded" || phase == "Failed" || tolerations == nullptr) return false;
  return std::ranges::any_of(*tolerations, [&](const core::Json& one) {
    return core::get_string(one, {"key"}) == kTolerationPlacedFor && core::get_string(one, {"value"}) == placed_for_value(job);
  });
}

std::optional<Unneeded> Unneeded::no_pod_runs(const plan::Observing& observing, slurm::OwnJob job, const JobId& id,
                                              const Pods& pods, const plan::Fact& look) {
  const core::Json* items = look.value ? core::find(*look.value, {"items"}) : nullptr;
  if (items == nullptr || !items->is_array()) return {};
  const auto live_runs = [&](const core::Json& pod) { return runs_for(pod, id); };
  const auto runs = [](const PodPtr& pod) { return phase_of(*pod) != PodPhase::kEnded; };
  if (std::ranges::any_of(*items, live_runs) || std::ranges::any_of(pods, runs)) return {};
  return Unneeded(observing, pods.empty() ? "no pod runs for it" : "all of its pods have ended", std::move(job));
}

std::optional<Unneeded> Unneeded::pod_not_bound(const plan::Observing& observing, slurm::OwnJob job,
                                                const kube::SchedulingPodRecord& pod) {
  if (!is_placed_for(pod, job) || pod.phase != "Failed" || pod.reason != status_reason(kNotBound)) return {};
  return Unneeded(observing, "pod " + pod.meta.name + " could not be bound", std::move(job));
}

}  // namespace bridge
