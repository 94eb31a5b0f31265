// Finds options that change the name under which a worker's slurmd registers, such as -N. The operator finds a worker in Slurm,
// and protects its jobs, by the expected name: see slurm_node_name().
#pragma once

#include <string>
#include <string_view>

#include "api/nodeset.hpp"
#include "core/json.hpp"

namespace op::nodeset {

/// The variable of the slurmd container with the expected name. Set only with host networking: without it, slurmd would use the
/// host name of the machine, which may differ from the name of the Kubernetes node.
inline constexpr std::string_view kWorkerName = "WORKER_NAME";

/// Returns why slurmd may register under another name than the worker's, and what to write instead. "": it registers under the
/// worker's name. `slurmd`: the container as users write it, with command, args and env.
[[nodiscard]] std::string registered_name_problem(const core::Json& slurmd, const api::NodeSetSpec& spec,
                                                  std::string_view nodeset);

}  // namespace op::nodeset
