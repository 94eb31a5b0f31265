// Evidence that allows the bridge to end a pod that must not run, or a job that no pod needs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bridge/common/hosts.hpp"
#include "bridge/common/job_table.hpp"
#include "kube/acts.hpp"
#include "slurm/own_job.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace bridge {

/// The reason of the end of a pod that Kubernetes did not bind in time.
inline constexpr std::string_view kNotBound = "NotBound";

/// Evidence that a pod must not run: Slurm no longer holds a node for the pod, or Kubernetes does not bind the pod.
class PodOver final : public kube::PodEvidence {
 public:
  /// Requires a complete snapshot, of any age, in which the pod's job has ended. The evidence does not expire, because an ended
  /// external job cannot be requeued. So even after the end of hundreds of jobs, no pod waits for another snapshot. Returns
  /// nullopt for a waiting pod that gets another job.
  static std::optional<PodOver> job_ended(const plan::Observing& observing, const slurm::Snapshot& snapshot,
                                          const std::string& installation, const kube::SchedulingPodRecord& pod,
                                          const JobTable::Row& row);
  /// Requires a fresh snapshot without the job that the pod was placed for, and proof in `jobs` that slurmctld has not lost
  /// that job (JobTable::younger). `jobs` must have read this snapshot.
  static std::optional<PodOver> job_gone(const plan::Observing& observing, const slurm::Snapshot& snapshot,
                                         const std::string& installation, const kube::SchedulingPodRecord& pod,
                                         const JobTable& jobs);
  /// Requires a fresh snapshot that has the pod's job, and a time `now` on slurmctld's clock at or after leaves_at(). The
  /// evidence expires with the snapshot, because the end of the job can still change.
  static std::optional<PodOver> job_ends_soon(const plan::Observing& observing, const slurm::Snapshot& snapshot,
                                              const std::string& installation, const kube::SchedulingPodRecord& pod,
                                              const JobTable::Row& row, core::WallTime now);
  /// Requires that Kubernetes has not bound the placed pod for `limit`. `since`: when the pod was first seen unbound.
  static std::optional<PodOver> not_bound(const plan::Observing& observing, const kube::SchedulingPodRecord& pod,
                                          core::MonoTime since, core::Duration limit);

  /// The reason of the condition SlurmEnded.
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  PodOver(const plan::Observing& observing, const kube::SchedulingPodRecord& pod, std::string_view kind, std::string reason,
          std::string detail, std::optional<core::MonoTime> good_until)
      : PodEvidence(observing, pod, kind, std::move(detail), good_until, pod.node_name.empty() ? About::kVersion : About::kPod),
        reason_(std::move(reason)) {}

  std::string reason_;
};

/// Reports whether the pod was placed for the job and has not ended. `pod`: the pod as the API server returns it.
[[nodiscard]] bool runs_for(const core::Json& pod, const JobId& job);

/// Evidence that no pod needs a job of this installation.
class Unneeded final : public plan::Evidence {
 public:
  /// The pod's phase is Succeeded or Failed, or it is being deleted and was never placed.
  static std::optional<Unneeded> pod_ended(const plan::Observing& observing, slurm::OwnJob job,
                                           const kube::SchedulingPodRecord& pod);
  /// The API server, asked live, has no pod with the UID of the job's pod. `look` is the answer for that pod's name.
  static std::optional<Unneeded> pod_gone(const plan::Observing& observing, slurm::OwnJob job, const plan::Fact& look);
  /// Somebody else removed the gate of the pod, which the bridge never placed. Kubernetes schedules the pod without the job.
  static std::optional<Unneeded> pod_freed(const plan::Observing& observing, slurm::OwnJob job,
                                           const kube::SchedulingPodRecord& pod);
  /// The node of the bound pod has not been ready for `limit`, and `look`, the API server's live answer, shows that it is still
  /// not ready. The pod might still run on the node. `since`: when the node was first seen not ready.
  static std::optional<Unneeded> node_silent(const plan::Observing& observing, slurm::OwnJob job,
                                             const kube::SchedulingPodRecord& pod, core::MonoTime since, core::Duration limit,
                                             const plan::Fact& look);
  /// The pod still has its gate, so nothing runs for the job. The bridge can cancel the job and submit another one.
  static std::optional<Unneeded> replaceable(const plan::Observing& observing, slurm::OwnJob job,
                                             const kube::SchedulingPodRecord& pod);
  /// The pod has another job, `kept`.
  static std::optional<Unneeded> second(const plan::Observing& observing, slurm::OwnJob job, std::int64_t kept);
  /// No pod runs for the job of a group. `pods`: the pods in the cache that were placed for the job. `look`: the API server's
  /// live list of the pods that have the number of the job as a label. Both are checked, because users can remove the label.
  static std::optional<Unneeded> no_pod_runs(const plan::Observing& observing, slurm::OwnJob job, const JobId& id,
                                             const Pods& pods, const plan::Fact& look);
  /// Kubernetes did not bind this pod of the job's group in time, so that not all pods of the group can run.
  static std::optional<Unneeded> pod_not_bound(const plan::Observing& observing, slurm::OwnJob job,
                                               const kube::SchedulingPodRecord& pod);

  [[nodiscard]] const slurm::OwnJob& job() const { return job_; }
  /// Reports whether the pod might still run. If so, the pod must get the condition SlurmEnded before the job is cancelled.
  [[nodiscard]] bool pod_may_run() const { return pod_may_run_; }

 private:
  Unneeded(const plan::Observing& observing, std::string detail, slurm::OwnJob job, bool pod_may_run = false)
      : Evidence(observing, "Unneeded", std::move(detail), job.good_until()), job_(std::move(job)), pod_may_run_(pod_may_run) {}

  slurm::OwnJob job_;
  bool pod_may_run_;
};

}  // namespace bridge
