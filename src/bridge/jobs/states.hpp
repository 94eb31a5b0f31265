// What a state of a Slurm job means for its pod, and what the fields of a pod mean for its job.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kube/object.hpp"
#include "slurm/model.hpp"
#include "slurm/own_job.hpp"

namespace bridge::jobs {

enum class JobPhase {
  kWaits,      ///< It is in the queue.
  kStarts,     ///< It holds nodes that are not ready yet.
  kRuns,       ///< Pods may run on its nodes.
  kSuspended,  ///< It holds its nodes, and nothing of it should run.
  kEnded,      ///< It holds nothing any more.
  kUnclear,    ///< Its state could not be read. Nothing follows from it.
};
[[nodiscard]] JobPhase phase_of(const slurm::Job& job);

/// Reports whether slurmctld refused the job when it was submitted. Such a job is listed, and has never held a node.
[[nodiscard]] bool is_refused(const slurm::Job& job);

/// A job in any life of slurmctld. A slurmctld that has lost its state counts its jobs from 1 again.
struct JobId {
  std::int64_t number = 0;
  std::int64_t submitted = 0;  ///< When it was submitted: seconds on slurmctld's clock; 0: not known.
  friend bool operator==(const JobId&, const JobId&) = default;
};
[[nodiscard]] JobId id_of(const slurm::Job& job);

/// Returns the node of a job that holds exactly one node, or "".
[[nodiscard]] std::string node_of(const slurm::Job& job);

/// Returns the reason of the condition SlurmEnded for a job that has ended: "Cancelled", "TimedOut", "Preempted". The word for
/// a state that is not known is "Ended".
[[nodiscard]] std::string end_reason(const slurm::Job& job);

/// Returns when a pod must be told to end, so that it is gone when its running job reaches its end: the grace period of the pod
/// earlier. A job whose time is short gives at least half of it to the pod. nullopt: the job has no end.
[[nodiscard]] std::optional<core::WallTime> leaves_at(const kube::SchedulingPodRecord& pod, const slurm::Job& job);

enum class PodPhase {
  kWaiting,  ///< It has the gate of the bridge.
  kPlaced,   ///< The bridge has removed the gate, and Kubernetes has not bound the pod yet.
  kBound,    ///< It has a Kubernetes node, and was placed by the bridge.
  kEnded,    ///< Its phase is Succeeded or Failed.
  kForeign,  ///< The bridge has not placed it.
};
[[nodiscard]] PodPhase phase_of(const kube::SchedulingPodRecord& pod);
/// Reports whether the condition SlurmEnded of the pod is True.
[[nodiscard]] bool is_told_to_end(const kube::SchedulingPodRecord& pod);

/// Returns the job that the pod was placed for. Empty: the bridge has not placed the pod. There is more than one entry only if
/// a user has added others. The right one cannot be removed.
[[nodiscard]] std::vector<JobId> placed_for(const kube::SchedulingPodRecord& pod);
/// Returns the value of the toleration kTolerationPlacedFor.
[[nodiscard]] std::string placed_for_value(const JobId& job);
/// Returns the number of the job that the bridge replaces, as the pod says; 0 if there is none.
[[nodiscard]] std::int64_t replaced_job_of(const kube::ObjectMeta& pod);

/// The key of a submission: the UID of the pod, and the number of the attempt. Each attempt after a job that slurmctld refused,
/// or that the bridge replaced, has another number.
[[nodiscard]] std::string key_of(const std::string& pod_uid, int attempt);
struct Submission {
  std::string pod_uid;
  int attempt = 0;  ///< 0: the key is not one of the bridge.
};
[[nodiscard]] Submission submission_of(const slurm::JobMark& mark);

}  // namespace bridge::jobs
