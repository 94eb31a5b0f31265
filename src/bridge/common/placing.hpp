// The patches of a pod that the bridge writes.
#pragma once

#include <string>

#include "bridge/common/states.hpp"
#include "core/json.hpp"
#include "kube/acts.hpp"
#include "kube/object.hpp"

namespace bridge {

/// Returns one JSON patch that removes the gate of the bridge and lets Kubernetes bind the pod only to this node. It adds the
/// node to each term of the required node affinity, because one matching term is enough. It also adds two tolerations (managed
/// nodes, kTolerationPlacedFor) and what restore_words() writes. It fails with kConflict if the pod has changed.
[[nodiscard]] plan::ActPtr place(const kube::SchedulingPodRecord& pod, const std::string& kube_node,
                                 const std::string& slurm_node, const JobId& job);

/// Returns a patch that removes the gate of the bridge and nothing else. It fails with kConflict if the pod has changed.
[[nodiscard]] plan::ActPtr let_go(const kube::SchedulingPodRecord& pod);

/// Returns a patch that sets the label and the annotation of a placed pod: the number of the job, and the node's name in Slurm.
[[nodiscard]] plan::ActPtr restore_words(const kube::SchedulingPodRecord& pod, const std::string& slurm_node, std::int64_t job);

/// Returns a patch that writes kAnnotationReplacedJob: the job that is about to be replaced. The patch fails with kConflict if
/// the pod has changed, because the pod might have been placed.
[[nodiscard]] plan::ActPtr note_replaced(const kube::SchedulingPodRecord& pod, std::int64_t job);

/// A wanted condition of a pod.
struct Condition {
  std::string_view type;
  bool status = false;
  std::string reason;   ///< CamelCase.
  std::string message;  ///< One line.
};
/// Returns the entries of a strategic merge patch for the wanted conditions that differ from the pod's. Empty: none of them
/// differs.
[[nodiscard]] core::Json condition_changes(const kube::PodRecord& pod, const std::vector<Condition>& wanted,
                                           core::WallTime now);
/// Returns a patch that sets these conditions. It does not depend on the version of the pod.
[[nodiscard]] plan::ActPtr set_conditions(const kube::PodRecord& pod, core::Json changes);

/// Returns a patch that sets the phase of an unbound pod to Failed, so that no scheduler binds the pod, and users see why. The
/// patch fails with kConflict if the pod has changed, because the pod might be bound. Needs evidence that the pod must not run.
[[nodiscard]] plan::ActPtr fail_unbound(const kube::PodRecord& pod, const kube::PodEvidence& evidence, std::string reason,
                                        std::string message, core::Json conditions);

}  // namespace bridge
