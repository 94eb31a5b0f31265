// What the parts of the workload share. workload.cpp leads it from its beginning to its end, workload_users.cpp has what users
// do, workload_inputs.cpp what they name, workload_children.cpp what becomes of what the operator made, workload_slurm.cpp what
// happens in Slurm, workload_more.cpp what is drawn apart; fixed_history.cpp is the fixed history. Private to this folder.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/loop.hpp"

namespace sim {

/// Within this long after the last fault the declared state is reached. slurmctld takes SlurmdTimeout (5 min) to miss a slurmd,
/// a pod of a lost Kubernetes node stays for longer, and backoffs of crashed containers run up to 5 min.
inline constexpr core::Duration kSettle{std::chrono::minutes{25}};

inline const std::vector<std::string> kNodeSets{"cpu", "gpu", "big"};
inline constexpr const char* kDaemons = "cpu";  ///< The NodeSet whose scalingMode changes.
inline constexpr const char* kPool = "site/pool";
inline constexpr const char* kRefusedConf = "PartitionName=extra Nodes=nosuch\n";
inline constexpr const char* kNoImage = "local/nonesuch:1";
inline constexpr const char* kOtherSlurmd = "local/slurmd:other";
inline constexpr const char* kOtherSlurmctld = "local/slurmctld:other";
inline constexpr const char* kReservation = "window";

/// Some of them in one line, for a message.
std::string first_few(const std::vector<std::string>& reasons);

}  // namespace sim
