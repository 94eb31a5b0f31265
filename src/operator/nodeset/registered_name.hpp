// Under which name slurmd of a worker registers: with -N, the one that users give it. The operator finds a worker in Slurm, and
// spares its jobs, by the name that it expects; see slurm_node_name().
#pragma once

#include <string>
#include <string_view>

#include "api/nodeset.hpp"
#include "core/json.hpp"

namespace op::nodeset {

/// The variable of slurmd's container with the name that the operator expects; only with host networking, where slurmd would
/// else take the host's own name, which need not be that of the Kubernetes node.
inline constexpr std::string_view kWorkerName = "WORKER_NAME";

/// Why slurmd may register under a name that is not certainly the worker's, and what to write instead; "": it does not.
/// `slurmd`: what users write of its container, with its command, args and env.
[[nodiscard]] std::string registered_name_problem(const core::Json& slurmd, const api::NodeSetSpec& spec,
                                                  std::string_view nodeset);

}  // namespace op::nodeset
