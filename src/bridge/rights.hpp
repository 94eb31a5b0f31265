// The rights of slurm-bridge in all namespaces, for the chart.
#pragma once

#include "api/kinds.hpp"

namespace bridge {

/// Returns the rules of RBAC by part, as the parts declare them. The part "cluster" is for a Slurm cluster with a Controller.
/// The rights to the Lease and to the key of Slurm are not among them, because they are in one namespace each.
[[nodiscard]] api::GeneratedFile rights_file();

}  // namespace bridge
