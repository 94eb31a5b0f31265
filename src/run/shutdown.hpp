// The end of a manager, step by step, each after the one before it:
//
//   running -> ending passes    begin(), or the lease was lost: no pass begins any more.
//   ending passes -> closing    The last pass has ended, or the grace is over: watches stop, events are sent.
//   closing -> ended            The lease was given up, or left to run out where something may still write.
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
    std::function<std::size_t()> passes;  ///< How many are under way.
    std::function<void()> stop_watches;
    std::function<void(std::function<void()> done)> send_events;
    std::function<void(std::function<void()> done)> give_up_lease;
  };
  /// `grace`: passes that take longer are not waited for.
  Shutdown(core::Loop& loop, core::Logger& logger, core::Duration grace, Steps steps);

  [[nodiscard]] State state() const { return state_; }
  /// Nothing may begin any more.
  [[nodiscard]] bool begun() const { return state_ != State::kRunning; }
  /// `done` is called once all is over; never from inside this call. The first call counts the grace; later ones wait as well.
  void begin(std::function<void()> done);
  /// The lease was lost. What is under way ends without a grace; the owner ends the process.
  void lease_lost();
  /// A pass has ended.
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
