// The name under which the slurmd of a worker registers. Users can set it with the option -N. The operator finds a worker in
// Slurm, and protects its jobs, by the expected name: see slurm_node_name().
#pragma once

#include <string>
#include <string_view>

#include "api/nodeset.hpp"
#include "core/json.hpp"

namespace op::nodeset {

/// The variable of the slurmd container with the expected name. Only with host networking: slurmd would use the name of the
/// host, which may differ from the name of the Kubernetes node.
inline constexpr std::string_view kWorkerName = "WORKER_NAME";

/// Returns why slurmd may register under another name than that of the worker, and what to write instead. "": it does not.
/// `slurmd`: the container as users write it, with command, args and env.
[[nodiscard]] std::string registered_name_problem(const core::Json& slurmd, const api::NodeSetSpec& spec,
                                                  std::string_view nodeset);

}  // namespace op::nodeset
