// What oracles note and do not judge yet. Take a line away, and it is judged.
#pragma once

#include <array>

#include "sim/job_oracle.hpp"

namespace sim {

/// Losses of jobs (sim/job_oracle.hpp). The program prints how many there were of each.
inline constexpr std::array kNotJudgedYet{
    // Where nothing is known to be accepted, NodeSets' partitions are left out for what slurmctld refuses in extraConf.
    Blame::kLeftOut,
};

}  // namespace sim
