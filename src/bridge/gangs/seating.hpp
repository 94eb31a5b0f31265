// Assigns the pods of a group to the nodes of their job.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bridge/common/hosts.hpp"

namespace bridge::gangs {

/// Returns pairs of a pod and a free node, until no pod or no free node is left. `nodes`: the nodes of the job, in Slurm's
/// order. `taken`: the nodes that other pods of the job have. `pods`: in the order of the group.
///
/// If there is a pod for each free node, the pods get the nodes in order. If pods are missing, a pod with an index gets the
/// node of its index if that node is free. So the nodes of missing pods with an index stay free for them.
[[nodiscard]] std::vector<std::pair<PodPtr, std::string>> seat(const Pods& pods, const std::vector<std::string>& nodes,
                                                               const std::vector<std::string>& taken);

}  // namespace bridge::gangs
