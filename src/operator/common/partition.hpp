// What a NodeSet asks for in slurm.conf.
#pragma once

#include <string>
#include <string_view>

#include "core/result.hpp"
#include "slurm/conf/conf.hpp"

namespace op {

/// The line of a NodeSet's partition with this name in Slurm; `config` is spec.partition.config. Error: all reasons why Slurm
/// would reject it.
core::Result<slurm::conf::Entry> partition_line(std::string_view name, std::string_view config);
/// "; PartitionName: Nosuch ...": possible reasons why slurmctld refuses such a line, which it reports only in its log; "":
/// none known.
std::string partition_doubts(std::string_view name, std::string_view config);

}  // namespace op
