// The faults that are tried one at a time. Each fault begins at one write of the fixed history. Most of them end by themselves.
//
//   sim::OperatorWorld world({}, {.processes = trial.processes});
//   trial.arm(world, 7);
//   sim::FixedResult result = sim::run_fixed(world);     // must end as without the fault
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/histories/world.hpp"

namespace sim {

struct Trial {
  std::string name;
  int processes = 1;                                     ///< The number of processes of the program.
  std::function<void(World&, std::uint64_t write)> arm;  ///< Plans the fault for this write. Numbers begin at 0.
};

/// Returns all trials: the faults of requests, then of watches, the API server, Slurm's answers, clocks and leaders.
const std::vector<Trial>& all_trials();

}  // namespace sim
