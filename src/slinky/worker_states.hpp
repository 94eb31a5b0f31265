// Translates between a worker's pod and its Slurm node: from the node's states to conditions of the pod, and from a cordon of
// the pod to the node's reason in Slurm.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "kube/object.hpp"

namespace slinky {

/// The name of a Slurm node's state in Slurm, and its name in the type of a pod condition.
struct StateName {
  std::string_view slurm;
  std::string_view condition;
};
inline constexpr std::array<StateName, 7> kBaseStates{{{"ALLOCATED", "Allocated"},
                                                       {"DOWN", "Down"},
                                                       {"ERROR", "Error"},
                                                       {"FUTURE", "Future"},
                                                       {"IDLE", "Idle"},
                                                       {"MIXED", "Mixed"},
                                                       {"UNKNOWN", "Unknown"}}};
inline constexpr std::array<StateName, 8> kStateFlags{{{"COMPLETING", "Completing"},
                                                       {"DRAIN", "Drain"},
                                                       {"FAIL", "Fail"},
                                                       {"INVALID", "Invalid"},
                                                       {"INVALID_REG", "InvalidReg"},
                                                       {"MAINTENANCE", "Maintenance"},
                                                       {"NOT_RESPONDING", "NotResponding"},
                                                       {"UNDRAIN", "Undrain"}}};

/// Turns a user's text into one line that slurmctld accepts.
[[nodiscard]] std::string clean_reason(std::string_view text);
/// Returns the reason for draining the node of a cordoned pod, without the operator's prefix.
[[nodiscard]] std::string pod_cordon_reason(const kube::PodRecord& pod);
/// Returns the reason that pod_cordon_reason() uses if no annotation of the pod sets a reason.
[[nodiscard]] std::string plain_cordon_reason(const kube::PodRecord& pod);

}  // namespace slinky
