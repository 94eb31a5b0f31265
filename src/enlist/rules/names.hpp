// Names of pools and nodes. Slurm shares one space of names: a node must not be called like a NodeSet (slurmctld 24.11 and
// later ends at its next start), and a pool is a NodeSet.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace enlist {

/// Checks the name of a pool: 1 to 40 of a-z, 0-9 and "-", a letter first, no "-" last, and no number after the last "-",
/// because it would look like a node. "default", "all" and the names of marker partitions (slurm/conf/loaded.hpp) are refused.
/// Error: kInvalid, with the name and what is allowed.
[[nodiscard]] core::Result<void> check_pool_name(std::string_view name);
/// Returns "gpu-12".
[[nodiscard]] std::string node_name(std::string_view pool, std::int64_t number);

}  // namespace enlist
