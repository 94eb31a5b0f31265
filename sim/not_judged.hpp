// What oracles note and do not judge yet. Take a line away, or turn a constant to true, and it is judged.
#pragma once

#include <array>

#include "sim/job_oracle.hpp"

namespace sim {

/// Losses of jobs (sim/job_oracle.hpp). The program prints how many there were of each.
inline constexpr std::array kNotJudgedYet{
    // Known to happen.
    Blame::kNameTaken,  // The names of two NodeSets' workers may be the same.
    Blame::kKey,        // Another key is mounted under running workers, and the next reconfigure loads it.
    // Prevented by now: to be judged once many histories have none.
    Blame::kNewWorker,      // Scale-in deletes a worker that is just starting, with its first job.
    Blame::kDyingWorker,    // ReturnToService ends the DOWN of preStop, and the next jobs start there.
    Blame::kGoneWorker,     // Nobody drains the record of a pod that is gone.
    Blame::kEviction,       // Workers are protected only once they were seen to be busy.
    Blame::kPartition,      // Partitions go under running jobs,
    Blame::kPartitionWait,  // and under waiting ones.
    Blame::kTaint,          // A kubelet that is away for five minutes costs its workers.
    Blame::kProbe,          // Liveness ends slurmd before SlurmdTimeout would.
};

/// A drain by Slurm itself (resources, prolog, epilog), undone by the operator.
inline constexpr bool kJudgeOwnDrains = false;
/// A DOWN by an administrator that a registration ends.
inline constexpr bool kJudgeDownEndedByRegistration = false;
/// A drain by the operator without a cause (sim/drain_oracle.hpp).
inline constexpr bool kJudgeDrains = false;
/// Time without service, requests a minute, and workers that are started when all is well (sim/service_oracle.hpp).
inline constexpr bool kJudgeService = false;

}  // namespace sim
