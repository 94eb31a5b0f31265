#include "cli/pod_reasons.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace cli {
namespace {

using PodReason = std::pair<std::string_view, Explanation>;

constexpr std::string_view kAnotherPod = "Its owner, such as a Deployment, makes another pod, which gets a new job.";
constexpr std::string_view kEndedOtherwise = "Slurm ended its job. The message has the state of the job.";

// The reasons in src/bridge/*/plan.cpp and src/bridge/common/{steps,states,evidence}.cpp.
constexpr auto kQueued = std::to_array<PodReason>({
    {"Queued", {"Its job is in the queue, and Slurm has not looked at it yet.", ""}},
    {"NodeInUse",
     {"Its job has a node on which an earlier pod still ends.",
      "It starts when that pod is gone. Do not delete the pod with --force."}},
    {"SUSPENDED",
     {"Its job was suspended before the pod was placed.", "An administrator of Slurm continues it with `scontrol resume`."}},
    {"Unknown", {"Its job neither waits nor runs.", ""}},
    {"Refused",
     {"slurm-bridge or Slurm does not accept what the pod asks for.",
      "Correct the annotation that the message names. If it names something else, create the pod again without it."}},
    {"JobMissing",
     {"Slurm does not have its job, and may have lost its state.",
      "An administrator restores Slurm's state. Without it, delete the pod: its owner makes another one."}},
    {"NoNode",
     {"No node that the pod may use can run it.",
      "Ask for less, or change the node selector, the affinity, the tolerations or the partition."}},
    {"OtherGates", {"It has other scheduling gates.", "It gets a job when they are removed."}},
    {"Unsupported",
     {"This Slurm is too old for slurm-bridge.", "An administrator upgrades Slurm, or removes the gate of the pod."}},
    {"SlurmUnavailable", {"Slurm does not answer.", "It gets a job when Slurm answers again."}},
    {"NoGroup", {"The object of its group does not exist, or cannot be read.", "Create it in the namespace of the pod."}},
    {"GroupIncomplete",
     {"Its group starts together, and lacks pods.", "Create the other pods, or lower the size in the object of the group."}},
    {"GroupFull", {"Its group has as many pods as it needs.", "It waits for a place in the job of the group."}},
    {"JobEndsSoon",
     {"The job of its group ends soon, and takes no further pods.", "It gets a place in the next job of the group."}},
    {"Freed", {"Somebody removed the gate of the pod.", "Kubernetes alone schedules it."}},
    {"Retired", {"slurm-bridge is being removed.", "Kubernetes alone schedules it."}},
});

constexpr auto kEnded = std::to_array<PodReason>({
    {"Cancelled", {"Somebody cancelled its job.", kAnotherPod}},
    {"TimedOut",
     {"The time limit of its job ran out.",
      "The annotation slurmjob.slinky.slurm.net/timelimit sets another one, in minutes."}},
    {"Preempted", {"Slurm gave its node to a more urgent job.", kAnotherPod}},
    {"NodeFailed", {"Slurm lost the node of its job.", kAnotherPod}},
    {"BootFailed", {"The node of its job did not start.", kAnotherPod}},
    {"DeadlinePassed", {"The deadline of its job passed.", ""}},
    {"Completed", {kEndedOtherwise, kAnotherPod}},
    {"Failed", {kEndedOtherwise, kAnotherPod}},
    {"OutOfMemory", {kEndedOtherwise, kAnotherPod}},
    {"Revoked", {kEndedOtherwise, kAnotherPod}},
    {"Ended", {kEndedOtherwise, kAnotherPod}},
    {"Gone", {"Slurm no longer has its job.", kAnotherPod}},
    {"NotBound", {"Kubernetes did not bind it to the node that Slurm chose.", kAnotherPod}},
    {"NodeNotReady",
     {"Its node is not ready, so its job was cancelled. The pod might still run there.",
      "An administrator repairs the node, or makes sure that it is off, and then deletes the pod."}},
});

std::optional<Explanation> explained(std::span<const PodReason> table, std::string_view reason) {
  const auto found = std::ranges::find(table, reason, &PodReason::first);
  return found == table.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

std::optional<Explanation> explain_queued(std::string_view reason) {
  const auto ours = explained(kQueued, reason);
  return ours ? ours : explain_any_reason(reason);
}

std::optional<Explanation> explain_pod_end(std::string_view reason) {
  return explained(kEnded, reason);
}

}  // namespace cli
