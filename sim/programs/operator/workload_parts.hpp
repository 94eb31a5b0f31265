// Shared by the source files of the workload. Private to this folder. workload.cpp runs the workload from beginning to end.
// workload_users.cpp has the actions of users, workload_inputs.cpp the objects that users name, workload_children.cpp the
// objects that the operator creates, workload_slurm.cpp the events in Slurm, and workload_more.cpp the actions that are drawn
// separately. fixed_history.cpp has the fixed history.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/loop.hpp"

namespace sim {

/// The declared state must be reached this long after the last fault. slurmctld takes SlurmdTimeout (5 min) to notice a lost
/// slurmd. Kubernetes removes a pod of a lost node even later, and the backoff of a crashed container is up to 5 min.
inline constexpr core::Duration kSettle{std::chrono::minutes{25}};

inline const std::vector<std::string> kNodeSets{"cpu", "gpu", "big"};
inline constexpr const char* kDaemons = "cpu";  ///< The NodeSet whose scalingMode changes.
inline constexpr const char* kPool = "site/pool";
inline constexpr const char* kRefusedConf = "PartitionName=extra Nodes=nosuch\n";
inline constexpr const char* kNoImage = "local/nonesuch:1";
inline constexpr const char* kOtherSlurmd = "local/slurmd:other";
inline constexpr const char* kOtherSlurmctld = "local/slurmctld:other";
inline constexpr const char* kReservation = "window";

/// Returns some of the reasons in one line, for a message.
std::string first_few(const std::vector<std::string>& reasons);

}  // namespace sim
