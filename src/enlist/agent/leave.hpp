// The command `slurm-enlist leave`: asks the coordinator, with the host's own key, to let the node of this host leave. The
// agent does the rest. The command shows what is waited for until the host has left.
#pragma once

#include <chrono>
#include <optional>

#include "enlist/agent/join.hpp"

namespace enlist {

struct LeaveOptions {
  AgentOptions agent{};                           ///< Its folder and its status file.
  std::optional<std::chrono::seconds> wait = {};  ///< --wait: how long to wait; nullopt: until the host has left.
};

/// Returns the exit code: 0 if the host has left, or if it is not waited for; 1 with the cause on standard error if the
/// coordinator refuses, the node stays, or the wait is over. In the latter case the host goes on leaving.
int leave(const LeaveOptions& options, const JoinParts& parts);

}  // namespace enlist
