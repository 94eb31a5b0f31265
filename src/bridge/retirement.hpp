// The removal of slurm-bridge: a process with --retire takes the place of the running bridge, gives back what the bridge has
// changed, and ends when nothing is left.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

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

/// Watches what is left, and calls `done` when it is nothing.
class Retirement {
 public:
  /// Returns what is left, in words; nullopt: it is not known now.
  using Look = std::function<std::optional<std::vector<std::string>>()>;
  Retirement(core::Loop& loop, core::Logger& log, Look look, std::function<void()> done);

  /// Begins to look every two seconds. Caches lag behind writes, so nothing must be left three times in a row.
  void start();

 private:
  void look();

  core::Logger& log_;
  Look look_;
  std::function<void()> done_;
  int empty_ = 0;     ///< How often in a row nothing was left.
  std::string told_;  ///< The last line in the log.
  core::Timer timer_;
};

}  // namespace bridge
