// What the operator says between a worker's pod and its Slurm node: the states that it writes on the pod, and the reason that a
// cordon of the pod has in Slurm.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "kube/object.hpp"

namespace slinky {

/// A state of a Slurm node, and the word for it in the type of a pod's condition.
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

/// What a user wrote, as one line that slurmctld takes.
[[nodiscard]] std::string clean_reason(std::string_view text);
/// Why the node of a cordoned pod is drained, without the operator's prefix.
[[nodiscard]] std::string pod_cordon_reason(const kube::PodRecord& pod);
/// The same where no annotation gives a reason.
[[nodiscard]] std::string plain_cordon_reason(const kube::PodRecord& pod);

}  // namespace slinky
