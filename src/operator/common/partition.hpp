// What a NodeSet asks for in slurm.conf.
#pragma once

#include <string>
#include <string_view>

#include "core/result.hpp"
#include "slurm/conf/conf.hpp"

namespace op {

/// The line of the partition that a NodeSet wants, whose name in Slurm is `name`; `config` is its spec.partition.config. Fails,
/// with all that is wrong, when Slurm would not read it.
core::Result<slurm::conf::Entry> partition_line(std::string_view name, std::string_view config);
/// "; PartitionName: Nosuch ..." of what may be why slurmctld refuses such a line, or "": it says so in its log only.
std::string partition_doubts(std::string_view name, std::string_view config);

}  // namespace op
