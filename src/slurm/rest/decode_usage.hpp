// Decodes jobs, usage and partitions for limits and fair share (slurm/accounting/usage.hpp). An incomplete list is an error.
#pragma once

#include <string>

#include "slurm/accounting/usage.hpp"
#include "slurm/rest/decode.hpp"

namespace slurm {

// The only error of these functions is kInternal.
/// Decodes the jobs of slurmctld.
core::Result<Decoded<accounting::QueuedJob>> decode_queue(std::string body);
/// Decodes the jobs of slurmdbd.
core::Result<Decoded<accounting::QueuedJob>> decode_ended_jobs(std::string body);
core::Result<Decoded<accounting::Share>> decode_shares(std::string body);
core::Result<Decoded<accounting::PartitionRules>> decode_partition_rules(std::string body);

}  // namespace slurm
