// Evidence for what the bridge ends: a pod whose job is over, and a job that no pod needs.
//
// Folder src/bridge/jobs: the jobs controller of slurm-bridge. Uses bridge/common, and no other controller.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "bridge/jobs/job_table.hpp"
#include "kube/acts.hpp"
#include "slurm/own_job.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace bridge::jobs {

/// The pod must not run: Slurm does not hold its node for it any more, or Kubernetes does not bind it.
class PodOver final : public kube::PodEvidence {
 public:
  /// A fresh snapshot has the job of the pod, and the job has ended. An ended external job cannot be requeued, so the evidence
  /// does not expire. Not for a pod that waits if slurmctld refused the job, or if the bridge replaces it.
  static std::optional<PodOver> job_ended(const plan::Observing& observing, const slurm::Snapshot& snapshot,
                                          const std::string& installation, const kube::SchedulingPodRecord& pod,
                                          const slurm::Job& job);
  /// A fresh snapshot does not have the job that the pod was placed for, and slurmctld has not lost it: `jobs`, which have read
  /// this snapshot, show so (JobTable::younger).
  static std::optional<PodOver> job_gone(const plan::Observing& observing, const slurm::Snapshot& snapshot,
                                         const std::string& installation, const kube::SchedulingPodRecord& pod,
                                         const JobTable& jobs);
  /// A fresh snapshot has the job of the pod, and it is time for the pod to leave (leaves_at). The end of the job may still be
  /// moved.
  static std::optional<PodOver> job_ends_soon(const plan::Observing& observing, const slurm::Snapshot& snapshot,
                                              const std::string& installation, const kube::SchedulingPodRecord& pod,
                                              const slurm::Job& job, core::WallTime now);
  /// The pod was placed, and Kubernetes has not bound it for longer than `limit`. `since`: when it was first seen like this.
  static std::optional<PodOver> not_bound(const plan::Observing& observing, const kube::SchedulingPodRecord& pod,
                                          core::MonoTime since, core::Duration limit, const std::string& job);

  /// The reason of the condition SlurmEnded.
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  PodOver(const plan::Observing& observing, const kube::SchedulingPodRecord& pod, std::string_view kind, std::string reason,
          std::string detail, std::optional<core::MonoTime> good_until)
      : PodEvidence(observing, pod, kind, std::move(detail), good_until, pod.node_name.empty() ? About::kVersion : About::kPod),
        reason_(std::move(reason)) {}

  std::string reason_;
};

/// No pod needs this job of ours.
class Unneeded final : public plan::Evidence {
 public:
  /// The pod's phase is Succeeded or Failed, or it is being deleted and was never placed.
  static std::optional<Unneeded> pod_ended(const plan::Observing& observing, slurm::OwnJob job,
                                           const kube::SchedulingPodRecord& pod);
  /// The API server, asked live, has no pod with the UID of the job's pod. `look` is the answer for that pod's name.
  static std::optional<Unneeded> pod_gone(const plan::Observing& observing, slurm::OwnJob job, const plan::Fact& look);
  /// Somebody else removed the gate of the pod, so that Kubernetes schedules it without the job. The bridge never placed it.
  static std::optional<Unneeded> pod_freed(const plan::Observing& observing, slurm::OwnJob job,
                                           const kube::SchedulingPodRecord& pod);
  /// The node of the bound pod has not been ready for longer than `limit`, and `look` shows that it is not ready now: the node
  /// as the API server has it. The pod may still run there. `since`: when it was first seen like this.
  static std::optional<Unneeded> node_silent(const plan::Observing& observing, slurm::OwnJob job,
                                             const kube::SchedulingPodRecord& pod, core::MonoTime since, core::Duration limit,
                                             const plan::Fact& look);
  /// The pod still has its gate, so that nothing runs for the job. The bridge may cancel it to submit another one.
  static std::optional<Unneeded> replaceable(const plan::Observing& observing, slurm::OwnJob job,
                                             const kube::SchedulingPodRecord& pod);
  /// The pod has another job, `kept`.
  static std::optional<Unneeded> second(const plan::Observing& observing, slurm::OwnJob job, std::int64_t kept);

  [[nodiscard]] const slurm::OwnJob& job() const { return job_; }
  /// Reports whether the pod may still run. It must be told before the job is released.
  [[nodiscard]] bool pod_may_run() const { return pod_may_run_; }

 private:
  Unneeded(const plan::Observing& observing, std::string detail, slurm::OwnJob job, bool pod_may_run = false)
      : Evidence(observing, "Unneeded", std::move(detail), job.good_until()), job_(std::move(job)), pod_may_run_(pod_may_run) {}

  slurm::OwnJob job_;
  bool pod_may_run_;
};

}  // namespace bridge::jobs
