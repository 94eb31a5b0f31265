// The rights of slurm-bridge in all namespaces, for the chart.
#pragma once

#include "api/kinds.hpp"

namespace bridge {

/// Returns the RBAC rules of each part of slurm-bridge, as the parts declare them. The part "cluster" is for a Slurm cluster
/// with a Controller. The rights to the Lease and to the key of Slurm are not included, because they are in one namespace each.
[[nodiscard]] api::GeneratedFile rights_file();

}  // namespace bridge
