// What is known to happen, each until the operator prevents it. Take a line away, or turn a constant to true, and it is judged.
#pragma once

#include <array>

#include "sim/job_oracle.hpp"

namespace sim {

/// Losses of jobs (sim/job_oracle.hpp).
inline constexpr std::array kNotJudgedYet{
    Blame::kNameTaken,  // The names of two NodeSets' workers may be the same.
    Blame::kKey,        // Another key is mounted under running workers, and the next reconfigure loads it.
};

/// A drain by Slurm itself (resources, prolog, epilog), undone by the operator.
inline constexpr bool kJudgeOwnDrains = true;
/// A DOWN by an administrator that a registration ends.
inline constexpr bool kJudgeDownEndedByRegistration = true;

}  // namespace sim
