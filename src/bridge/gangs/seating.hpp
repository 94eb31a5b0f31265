// Assigns the pods of a group to the nodes of their job.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bridge/common/hosts.hpp"

namespace bridge::gangs {

/// Gives each pod a node of its own, and returns as many pairs as there are pods or free nodes. `nodes`: those of the job, in
/// Slurm's order. `taken`: those that other pods of the job have. `pods`: in the order of the group.
///
/// If there is a pod for each free node, the order of the pods is that of the nodes. If pods are missing, a pod with an index
/// gets the node of its index if that node is free. So the missing pods with an index find their own nodes free later.
[[nodiscard]] std::vector<std::pair<PodPtr, std::string>> seat(const Pods& pods, const std::vector<std::string>& nodes,
                                                               const std::vector<std::string>& taken);

}  // namespace bridge::gangs
