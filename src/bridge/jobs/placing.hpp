// The patches of a pod that the bridge writes.
#pragma once

#include <string>

#include "bridge/jobs/states.hpp"
#include "core/json.hpp"
#include "kube/acts.hpp"
#include "kube/object.hpp"

namespace bridge::jobs {

/// Returns one JSON patch that removes the gate of the bridge and lets Kubernetes bind the pod to this node only. Every term of
/// the required node affinity gets the node, because Kubernetes takes any term that matches. The patch also adds the toleration
/// of managed nodes, the record of the job, and the words of restore_words. It fails with kConflict if the pod has changed.
[[nodiscard]] plan::ActPtr place(const kube::SchedulingPodRecord& pod, const std::string& kube_node,
                                 const std::string& slurm_node, const JobId& job);

/// Returns a patch of the label and the annotation of a placed pod: the number of the job, and the name of the node in Slurm.
[[nodiscard]] plan::ActPtr restore_words(const kube::SchedulingPodRecord& pod, const std::string& slurm_node, std::int64_t job);

/// Returns a patch that notes the job that is about to be replaced. It fails with kConflict if the pod has changed, for it may
/// have been placed.
[[nodiscard]] plan::ActPtr note_replaced(const kube::SchedulingPodRecord& pod, std::int64_t job);

/// One condition as it shall be.
struct Condition {
  std::string_view type;
  bool status = false;
  std::string reason;   ///< CamelCase.
  std::string message;  ///< One line.
};
/// Returns the entries of a strategic merge patch for those conditions that the pod does not have like this. Empty: nothing
/// changes.
[[nodiscard]] core::Json condition_changes(const kube::PodRecord& pod, const std::vector<Condition>& wanted,
                                           core::WallTime now);
/// Returns a patch of these conditions, whatever the version of the pod.
[[nodiscard]] plan::ActPtr set_conditions(const kube::PodRecord& pod, core::Json changes);

/// Ends a pod without a Kubernetes node, by the phase Failed. No scheduler takes such a pod, and users still see it and why.
/// Fails with kConflict if the pod has changed, for it may have been bound. Needs evidence, because the pod never runs then.
[[nodiscard]] plan::ActPtr fail_unbound(const kube::PodRecord& pod, const kube::PodEvidence& evidence, std::string reason,
                                        std::string message, core::Json conditions);

}  // namespace bridge::jobs
