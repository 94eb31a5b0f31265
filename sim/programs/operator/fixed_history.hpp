// Runs the fixed history, in which each fault is tried at each write. Also checks that a settled operator writes nothing. All
// histories of the operator end with this check.
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
  std::uint64_t writes = 0;  ///< The number of writes at which a fault could begin.
};
/// Runs the fixed history: a cluster is created, grows, runs jobs, shrinks and is edited. A NodeSet is added and deleted, a
/// worker is deleted, and a key rotates. Returns what went wrong, the final state, and the number of writes.
FixedResult run_fixed(OperatorWorld& world);

/// Waits until terminating login pods have ended, and then runs the settled history for `length`. Returns a violation if there
/// are writes, except those that renew Tokens when that is due and those that repeat a warning.
std::vector<std::string> check_rest(World& world, const OperatorOracles& judges, core::Duration length);

}  // namespace sim
