// The fixed history, to try each fault at each write; and rest, with which all histories of the operator end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "sim/programs/operator/world.hpp"

namespace sim {

struct FixedResult {
  std::vector<std::string> wrong;
  core::Json state;
  std::uint64_t writes = 0;  ///< The writes that faults could have met.
};
/// A cluster is created, grows, runs a job, shrinks, is edited, and its NodeSet is deleted. Returns the final state or an
/// error.
FixedResult run_fixed(OperatorWorld& world);

/// Checks after a settled history that nothing is written for `length`.
std::vector<std::string> check_rest(World& world, const OperatorOracles& judges, core::Duration length);

}  // namespace sim
