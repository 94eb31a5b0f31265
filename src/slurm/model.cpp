#include "slurm/model.hpp"

#include <algorithm>

namespace slurm {

bool is_silent(const Node& node) {
  return node.state.base == "DOWN" && node.state.has("NOT_RESPONDING");
}

bool Job::holds_nodes() const {
  if (flags.contains("CONFIGURING") || flags.contains("COMPLETING")) return true;
  static const std::set<std::string, std::less<>> kHoldNothing{"PENDING",  "COMPLETED",     "CANCELLED", "FAILED",
                                                               "TIMEOUT",  "NODE_FAIL",     "PREEMPTED", "BOOT_FAIL",
                                                               "DEADLINE", "OUT_OF_MEMORY", "REVOKED"};
  return !kHoldNothing.contains(state);
}

bool Job::in_queue() const {
  return holds_nodes() || state == "PENDING";
}

bool Job::holds(std::string_view node) const {
  return holds_nodes() && (nodes_unknown || std::ranges::find(nodes, node) != nodes.end());
}

}  // namespace slurm
