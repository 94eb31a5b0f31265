// The name under which a worker's slurmd registers: with -N, the one that users set. The operator finds a worker in Slurm, and
// protects its jobs, by the expected name; see slurm_node_name().
#pragma once

#include <string>
#include <string_view>

#include "api/nodeset.hpp"
#include "core/json.hpp"

namespace op::nodeset {

/// The variable of slurmd's container with the expected name. Only with host networking, where slurmd would use the host's own
/// name, which may differ from the Kubernetes node's.
inline constexpr std::string_view kWorkerName = "WORKER_NAME";

/// Returns why slurmd may register under another name than the worker's, and what to write instead; "" if it does not.
/// `slurmd`: the container as users write it, with command, args and env.
[[nodiscard]] std::string registered_name_problem(const core::Json& slurmd, const api::NodeSetSpec& spec,
                                                  std::string_view nodeset);

}  // namespace op::nodeset
