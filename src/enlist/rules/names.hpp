// Names of pools and nodes. A node must not have the name of a NodeSet, because slurmctld 24.11 and later then exits at its
// next start. Each pool is a NodeSet.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace enlist {

/// Checks the name of a pool: 1 to 40 of a-z, 0-9 and "-", a letter first, no "-" last, and no number after the last "-",
/// because the name would look like a node's. "default", "all" and the names of marker partitions (slurm/conf/loaded.hpp) are
/// refused. Error: kInvalid, with the name and the rule.
[[nodiscard]] core::Result<void> check_pool_name(std::string_view name);
/// Returns the name of a node: "gpu-12" for number 12 of the pool "gpu".
[[nodiscard]] std::string node_name(std::string_view pool, std::int64_t number);

}  // namespace enlist
