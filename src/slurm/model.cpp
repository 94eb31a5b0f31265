#include "slurm/model.hpp"

namespace slurm {

bool Job::holds_nodes() const {
  if (flags.contains("CONFIGURING") || flags.contains("COMPLETING")) return true;
  static const std::set<std::string, std::less<>> kHoldNothing{"PENDING",  "COMPLETED",     "CANCELLED", "FAILED",
                                                               "TIMEOUT",  "NODE_FAIL",     "PREEMPTED", "BOOT_FAIL",
                                                               "DEADLINE", "OUT_OF_MEMORY", "REVOKED"};
  return !kHoldNothing.contains(state);
}

}  // namespace slurm
