// Reads the phase, the nodes and the end of Slurm jobs, and the phase and the jobs of pods.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kube/object.hpp"
#include "slurm/model.hpp"
#include "slurm/own_job.hpp"

namespace bridge {

enum class JobPhase {
  kWaits,      ///< The job is in the queue.
  kStarts,     ///< The job holds nodes that are not ready yet.
  kRuns,       ///< Pods may run on the job's nodes.
  kSuspended,  ///< The job holds its nodes, but its pods should not run.
  kEnded,      ///< The job has ended and holds no nodes.
  kUnclear,    ///< The state could not be read, so nothing is known about the job.
};
[[nodiscard]] JobPhase phase_of(const slurm::Job& job);

/// Reports whether slurmctld refused the job when it was submitted. Such a job is listed, and has never held a node.
[[nodiscard]] bool is_refused(const slurm::Job& job);

/// Identifies a job. The number is not enough, because slurmctld numbers jobs from 1 again after it has lost its state.
struct JobId {
  std::int64_t number = 0;
  std::int64_t submitted = 0;  ///< The time of submission: Unix seconds on slurmctld's clock; 0: not known.
  friend bool operator==(const JobId&, const JobId&) = default;
};
[[nodiscard]] JobId id_of(const slurm::Job& job);

/// Returns the nodes that a job holds, in Slurm's order. Empty if they could not be read.
[[nodiscard]] std::vector<std::string> nodes_of(const slurm::Job& job);

/// Returns the reason of the condition SlurmEnded for a job that has ended, such as "Cancelled", "TimedOut" or "Preempted".
/// Returns "Ended" for an unknown state.
[[nodiscard]] std::string end_reason(const slurm::Job& job);

/// Returns when a pod must begin to end so that it is gone when its running job ends: the pod's grace period and a margin
/// before that end, but not before half of the job's time has passed. nullopt: the job does not run or has no end.
[[nodiscard]] std::optional<core::WallTime> leaves_at(const kube::SchedulingPodRecord& pod, const slurm::Job& job);
/// Returns the reason in the status of a pod that ends: `end_reason`, a reason of the condition SlurmEnded, with a prefix.
[[nodiscard]] std::string status_reason(std::string_view end_reason);

enum class PodPhase {
  kWaiting,  ///< The pod has the gate of the bridge.
  kPlaced,   ///< The bridge has removed the gate, and Kubernetes has not bound the pod yet.
  kBound,    ///< The bridge has placed the pod, and it has a Kubernetes node.
  kEnded,    ///< The phase of the pod is Succeeded or Failed.
  kForeign,  ///< The pod has no gate, and the bridge has not placed it.
};
[[nodiscard]] PodPhase phase_of(const kube::SchedulingPodRecord& pod);
/// Reports whether somebody else removed the gate of the pod while its job was waiting, so that SlurmQueued is still True.
[[nodiscard]] bool is_freed_unnoticed(const kube::SchedulingPodRecord& pod);
/// Reports whether the condition SlurmEnded of the pod is True.
[[nodiscard]] bool is_told_to_end(const kube::SchedulingPodRecord& pod);

/// Returns the job that the pod was placed for. Empty: the bridge has not placed the pod. There is more than one entry only if
/// a user has added tolerations with the key kTolerationPlacedFor. Nobody can remove the toleration of the bridge.
[[nodiscard]] std::vector<JobId> placed_for(const kube::SchedulingPodRecord& pod);
/// Returns the value of the toleration kTolerationPlacedFor.
[[nodiscard]] std::string placed_for_value(const JobId& job);
/// Returns the job number in the annotation kAnnotationReplacedJob; 0 if there is none.
[[nodiscard]] std::int64_t replaced_job_of(const kube::ObjectMeta& pod);

/// Reports whether a pod that waits gets another job after the end of `job`: slurmctld refused `job`, the time limit of `job`
/// passed before the pod was placed, or the bridge replaces `job`. After any other end of `job`, the pod ends.
[[nodiscard]] bool gets_another_job(const kube::SchedulingPodRecord& pod, const slurm::Job& job);

/// Returns the key of a submission: a UID and the number of the attempt. `root_uid`: the UID of the pod or, for a group, of the
/// group's object. A new attempt, after a job that slurmctld refused or that the bridge replaced, has another number.
[[nodiscard]] std::string key_of(const std::string& root_uid, int attempt);
struct Submission {
  std::string root_uid;
  int attempt = 0;  ///< 0: the key is not one of the bridge.
};
[[nodiscard]] Submission submission_of(const slurm::JobMark& mark);

}  // namespace bridge
