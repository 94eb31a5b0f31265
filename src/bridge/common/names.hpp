// The names that slurm-bridge uses in Kubernetes: labels, annotations, gates, taints and conditions. If Slinky's Go bridge has
// a name for the same thing, slurm-bridge uses that name.
#pragma once

#include <string_view>

#include "slinky/managed_nodes.hpp"

namespace bridge {

using slinky::kLabelBridgeExternalNode;
using slinky::kLabelExternalNode;
using slinky::kTaintManagedNode;

inline constexpr std::string_view kProgram = "slurm-bridge";

/// The scheduling gate of a pod that waits for Slurm. A pod template can contain the gate.
inline constexpr std::string_view kGate = "scheduler.slinky.slurm.net/slurm-bridge";
/// Toleration of a placed pod. Its value is the job that the pod was placed for, as "NUMBER.SUBMITTED". No taint has this key.
/// The patch that removes the gate adds the toleration. Kubernetes lets nobody remove or change a toleration of a pod, so the
/// bridge relies on this record. Labels and annotations can be changed at any time.
inline constexpr std::string_view kTolerationPlacedFor = "scheduler.slinky.slurm.net/placed-for";
/// Pod label: the number of the Slurm job that the pod was placed for. Only for users; see kTolerationPlacedFor.
inline constexpr std::string_view kLabelJobId = "scheduler.slinky.slurm.net/slurm-jobid";
/// Pod annotation: the Slurm node that the pod was placed on. Only for users.
inline constexpr std::string_view kAnnotationNode = "slinky.slurm.net/slurm-node";
/// Pod annotation: the number of the job that the bridge cancels in order to submit another one for the pod.
inline constexpr std::string_view kAnnotationReplacedJob = "slinky.slurm.net/slurm-replaced-job";
/// Pod annotation: marks a managed pod in a namespace that is not managed. The value is the key of the Slurm cluster. Admission
/// sets the annotation in place of a schedulerName that asks for the bridge.
inline constexpr std::string_view kAnnotationManagedBy = "slinky.slurm.net/slurm-managed-by";
/// Label of a Kubernetes node: the name of the node in Slurm, if this name differs from the name in Kubernetes.
inline constexpr std::string_view kLabelSlurmNodeName = "slinky.slurm.net/slurm-nodename";
/// Annotation of an external node: the names of the partitions that the node shall be in, separated by commas.
inline constexpr std::string_view kAnnotationPartitions = "scheduler.slinky.slurm.net/external-node-partitions";
/// Node annotation. "NoExecute": kTaintManagedNode also has this effect on an external node without pods of Slurm or the
/// bridge.
inline constexpr std::string_view kAnnotationEffect = "slinky.slurm.net/managed-node-effect";
/// Condition of a Kubernetes node: True while Slurm has the node and the node is in service.
inline constexpr std::string_view kConditionNode = "SlurmReady";
/// Pod label: the PodGroup of scheduler-plugins (scheduling.x-k8s.io) to which the pod belongs, in its namespace.
inline constexpr std::string_view kLabelPodGroup = "scheduling.x-k8s.io/pod-group";
/// Prefix of the annotations with which a pod asks for settings of its job.
inline constexpr std::string_view kAnnotationPrefix = "slurmjob.slinky.slurm.net/";

/// Pod annotation, "true" or "false": whether all pods of its Job get one Slurm job.
inline constexpr std::string_view kAnnotationGang = "slurmjob.slinky.slurm.net/gang";

/// The PriorityClass of pods that name none. It preempts no pods: otherwise, Kubernetes' scheduler would end pods to use their
/// nodes, although Slurm has given the nodes to the pods that would end.
inline constexpr std::string_view kPriorityClass = "slurm-bridge";

/// Pod condition: True while the pod's job waits in Slurm's queue. Otherwise False, with a reason.
inline constexpr std::string_view kConditionQueued = "SlurmQueued";
/// Pod condition: True once the pod ends because its job has ended.
inline constexpr std::string_view kConditionEnded = "SlurmEnded";
/// Kubernetes' own condition of pods that are about to end because of a disruption.
inline constexpr std::string_view kConditionDisruptionTarget = "DisruptionTarget";

}  // namespace bridge
