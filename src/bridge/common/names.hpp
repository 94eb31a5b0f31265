// The words of slurm-bridge in Kubernetes: labels, annotations, gates, taints and conditions. Where the Go bridge of Slinky has
// a word for the same thing, it is the same word.
//
// Folder src/bridge/common: what the controllers of the bridge share. Uses slinky.
#pragma once

#include <string_view>

namespace bridge {

inline constexpr std::string_view kProgram = "slurm-bridge";

/// The scheduling gate of a pod that waits for Slurm. A pod template may contain it.
inline constexpr std::string_view kGate = "scheduler.slinky.slurm.net/slurm-bridge";
/// Pod label: the number of the Slurm job that the pod was placed for. Set together with the pin to the node.
inline constexpr std::string_view kLabelJobId = "scheduler.slinky.slurm.net/slurm-jobid";
/// Pod annotation: the Slurm node that the pod was placed on.
inline constexpr std::string_view kAnnotationNode = "slinky.slurm.net/slurm-node";
/// Pod annotation: the number of the job that the bridge cancels in order to submit another one for the pod.
inline constexpr std::string_view kAnnotationReplacedJob = "slinky.slurm.net/slurm-replaced-job";
/// Pod annotation: the key of the Slurm cluster that manages the pod, though its namespace is not managed. Set at admission, in
/// place of a schedulerName that asks for the bridge.
inline constexpr std::string_view kAnnotationManagedBy = "slinky.slurm.net/slurm-managed-by";
/// Label of a Kubernetes node: its name in Slurm, if that is another.
inline constexpr std::string_view kLabelSlurmNodeName = "slinky.slurm.net/slurm-nodename";
/// Taint of Kubernetes nodes that Slurm manages.
inline constexpr std::string_view kTaintManagedNode = "slinky.slurm.net/managed-node";
/// Prefix of the annotations with which a pod asks for settings of its job.
inline constexpr std::string_view kAnnotationPrefix = "slurmjob.slinky.slurm.net/";

/// The PriorityClass of pods that name none. It preempts no pods: Kubernetes' scheduler would take the node of a pod that Slurm
/// has placed there.
inline constexpr std::string_view kPriorityClass = "slurm-bridge";

/// Pod condition: True while the pod's job waits in Slurm's queue. False with a reason if it does not.
inline constexpr std::string_view kConditionQueued = "SlurmQueued";
/// Pod condition: True once the pod ends because its job has ended.
inline constexpr std::string_view kConditionEnded = "SlurmEnded";
/// Kubernetes' own condition of pods that are about to end because of a disruption.
inline constexpr std::string_view kConditionDisruptionTarget = "DisruptionTarget";

}  // namespace bridge
