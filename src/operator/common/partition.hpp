// Renders what a NodeSet asks for in slurm.conf.
#pragma once

#include <string>
#include <string_view>

#include "core/result.hpp"
#include "slurm/conf/conf.hpp"

namespace op {

/// Returns the line of the partition of a NodeSet with this name in Slurm. `config` is spec.partition.config. Error: all
/// reasons why Slurm would reject the line.
core::Result<slurm::conf::Entry> partition_line(std::string_view name, std::string_view config);
/// Returns possible reasons why slurmctld refuses such a line: "; PartitionName: Nosuch ...". slurmctld reports the reason only
/// in its log. "": none is known.
std::string partition_doubts(std::string_view name, std::string_view config);

}  // namespace op
