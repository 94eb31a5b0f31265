// The orderly end of a manager, step by step:
//
//   running -> ending passes    begin() was called or the lease was lost: no pass begins any more.
//   ending passes -> closing    The last pass has ended, or the grace period is over: watches stop, events are sent.
//   closing -> ended            The lease was released, or left to expire because something may still write.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "core/log.hpp"
#include "core/loop.hpp"

namespace run {

class Shutdown {
 public:
  enum class State { kRunning, kEndingPasses, kClosing, kEnded };
  struct Steps {
    std::function<std::size_t()> passes;  ///< The number of passes under way.
    std::function<void()> stop_watches;
    std::function<void(std::function<void()> done)> send_events;
    std::function<void(std::function<void()> done)> give_up_lease;
  };
  /// After `grace`, does not wait any longer for passes.
  Shutdown(core::Loop& loop, core::Logger& logger, core::Duration grace, Steps steps);

  [[nodiscard]] State state() const { return state_; }
  /// Reports whether the end has begun. Then no pass may begin any more.
  [[nodiscard]] bool begun() const { return state_ != State::kRunning; }
  /// Begins the end. Calls `done` in a later loop iteration, once the end is complete. Further calls do not extend the grace
  /// period.
  void begin(std::function<void()> done);
  /// Call it when the lease was lost. No pass begins any more, and no grace period starts. The owner ends the process.
  void lease_lost();
  /// Call it when a pass has ended.
  void pass_ended();

 private:
  void close();
  void ended();

  core::Logger& logger_;
  core::Duration grace_;
  Steps steps_;
  State state_ = State::kRunning;
  std::vector<std::function<void()>> done_;
  core::Timer grace_over_;
  core::Timer closing_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace run
