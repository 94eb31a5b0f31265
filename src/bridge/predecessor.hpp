// The removal of slurm-bridge: a process with --retire takes the place of the running bridge.
#pragma once

#include <string>

#include "core/log.hpp"
#include "core/loop.hpp"
#include "kube/client/client.hpp"

namespace bridge {

/// The bridge that a process with --retire takes the place of.
struct Predecessor {
  kube::Key deployment;
  std::string webhook;  ///< Its MutatingWebhookConfiguration; "": it has none.
};

/// Ends the predecessor, so that its Lease becomes free: deletes its webhook, because nobody would answer it, and then scales
/// its Deployment to 0. What does not exist is skipped, and what fails is tried again every five seconds. These writes are not
/// fenced: this process cannot lead before. The client must outlive the loop's timers.
void end_predecessor(core::Loop& loop, core::Logger& log, kube::Client& client, Predecessor predecessor);

}  // namespace bridge
