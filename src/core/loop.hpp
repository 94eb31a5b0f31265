// The event loop as state machines see it: timers, deferred calls, and work for other threads. One thread runs all callbacks.
//
// net/asio_loop.hpp implements it for production. sim/base/loop.hpp chooses the next event itself, on virtual time.
#pragma once

#include <cstdint>
#include <functional>

#include "core/clock.hpp"

namespace core {

using Callback = std::function<void()>;

class Loop {
 public:
  using TimerId = std::uint64_t;  ///< 0 is never the id of a timer.

  virtual ~Loop() = default;
  [[nodiscard]] virtual const Clock& clock() const = 0;
  /// Calls `call` once after `delay`. If the delay is 0, calls it in the next loop iteration, never from inside this function.
  virtual TimerId after(Duration delay, Callback call) = 0;
  /// Cancels a timer. Ignores the ids of timers that do not exist or that have fired.
  virtual void cancel(TimerId id) = 0;
  /// Runs `work` on another thread, then `then` on the loop. The simulator runs `work` on the loop, in a later iteration.
  /// `work` may only access data that `work` owns or that never changes.
  virtual void offload(Callback work, Callback then) = 0;
};

/// A timer that is cancelled when its owner is destroyed.
class Timer {
 public:
  explicit Timer(Loop& loop) : loop_(&loop) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { cancel(); }
  /// Calls `call` once after `delay`. Cancels the call of an earlier set().
  void set(Duration delay, Callback call) {
    cancel();
    id_ = loop_->after(delay, [this, call = std::move(call)] {
      id_ = 0;
      call();
    });
  }
  void cancel() {
    if (id_ != 0) loop_->cancel(id_);
    id_ = 0;
  }
  [[nodiscard]] bool pending() const { return id_ != 0; }

 private:
  Loop* loop_;
  Loop::TimerId id_ = 0;
};

}  // namespace core
