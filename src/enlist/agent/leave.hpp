// The command `slurm-enlist leave`: asks the coordinator, with the host's own key, to let the node of this host leave. The
// agent does the rest. Until the host has left, the command prints what the agent waits for.
#pragma once

#include <chrono>
#include <optional>

#include "enlist/agent/join.hpp"

namespace enlist {

struct LeaveOptions {
  AgentOptions agent{};                           ///< The agent's folders, files and service.
  std::optional<std::chrono::seconds> wait = {};  ///< --wait: how long to wait; nullopt: until the host has left.
};

/// Returns the exit code: 0 if the host has left, or if `wait` is 0; 1 with the cause on standard error if the coordinator
/// refuses, somebody cancels the leave, or the wait is over. When the wait is over, the host still continues to leave.
int leave(const LeaveOptions& options, const JoinParts& parts);

}  // namespace enlist
