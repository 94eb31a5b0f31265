// Renders the slurm.conf line of the partition of a NodeSet.
#pragma once

#include <string>
#include <string_view>

#include "core/result.hpp"
#include "slurm/conf/conf.hpp"

namespace op {

/// Returns the PartitionName= line of a NodeSet. `name`: the NodeSet's name in Slurm. `config`: spec.partition.config of the
/// NodeSet. Error: all reasons why Slurm would reject the line.
core::Result<slurm::conf::Entry> partition_line(std::string_view name, std::string_view config);
/// Returns problems for which slurmctld might refuse the line of partition_line, such as "; PartitionName: Nosuch ...".
/// slurmctld reports the actual reason only in its log. "": no problem is known.
std::string partition_doubts(std::string_view name, std::string_view config);

}  // namespace op
