// Finds options that change the name under which a worker's slurmd registers, such as -N. The operator needs the expected name,
// slurm_node_name(), to find a worker's node in Slurm and to protect the worker's jobs.
#pragma once

#include <string>
#include <string_view>

#include "api/nodeset.hpp"
#include "core/json.hpp"

namespace op::nodeset {

/// The environment variable of the slurmd container that holds the expected name. The variable is set only with host
/// networking, because slurmd would otherwise use the host name of the machine, which can differ from the name of the
/// Kubernetes node.
inline constexpr std::string_view kWorkerName = "WORKER_NAME";

/// Returns why slurmd might register under another name than the worker's, and what the user should write instead. "": slurmd
/// registers under the worker's name. `slurmd`: the container as users write it, with command, args and env.
[[nodiscard]] std::string registered_name_problem(const core::Json& slurmd, const api::NodeSetSpec& spec,
                                                  std::string_view nodeset);

}  // namespace op::nodeset
