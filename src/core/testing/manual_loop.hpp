// A loop on virtual time for unit tests. Callbacks run only when the test runs the loop, and always in the same order.
//
//   core::ManualLoop loop;
//   machine.start();
//   loop.run_ready();          // all that is due now
//   loop.advance(500ms);       // moves the clock, calling timers as they come due
//
// Calls that are due at the same time run in the order in which they were added. To vary that order, use the loop of the
// simulator.
#pragma once

#include <map>
#include <stdexcept>
#include <utility>

#include "core/loop.hpp"

namespace core {

class ManualClock final : public Clock {
 public:
  [[nodiscard]] MonoTime mono() const override { return mono_; }
  [[nodiscard]] WallTime wall() const override { return wall_; }
  void move(Duration by) {
    mono_ = mono_ + by;
    wall_ = wall_ + by;
  }
  void set_wall(WallTime wall) { wall_ = wall; }

 private:
  MonoTime mono_{Duration{1'000'000}};
  WallTime wall_{Duration{1'767'323'045'000}};  // 2026-01-02T03:04:05Z
};

class ManualLoop final : public Loop {
 public:
  [[nodiscard]] const Clock& clock() const override { return clock_; }
  [[nodiscard]] ManualClock& manual_clock() { return clock_; }

  TimerId after(Duration delay, Callback call) override {
    const TimerId id = ++last_id_;
    const MonoTime due = clock_.mono() + (delay < Duration{0} ? Duration{0} : delay);
    queue_.emplace(std::pair(due, id), std::move(call));
    due_.emplace(id, due);
    return id;
  }

  void cancel(TimerId id) override {
    const auto it = due_.find(id);
    if (it == due_.end()) return;
    const auto gone = queue_.extract({it->second, id});  // Destroyed on return, because that can cancel other timers.
    due_.erase(it);
  }

  /// Runs the work in one loop iteration and `then` in a later one.
  void offload(Callback work, Callback then) override {
    after(Duration{0}, [this, work = std::move(work), then = std::move(then)]() mutable {
      work();
      after(Duration{0}, std::move(then));
    });
  }

  /// Runs all calls that are due now, including calls that these add. Throws after 10 million: an endless loop is a bug.
  void run_ready() { run_until(clock_.mono()); }

  /// Advances the clock by `by`, and runs each timer at its own time.
  void advance(Duration by) {
    const MonoTime end = clock_.mono() + by;
    run_until(end);
    if (clock_.mono() < end) clock_.move(end - clock_.mono());
  }

  [[nodiscard]] std::size_t pending() const { return queue_.size(); }
  /// Returns how long until the next call is due; zero if there is none.
  [[nodiscard]] Duration until_next() const {
    return queue_.empty() ? Duration{0} : queue_.begin()->first.first - clock_.mono();
  }

 private:
  void run_until(MonoTime end) {
    for (int turns = 0; !queue_.empty() && queue_.begin()->first.first <= end; ++turns) {
      if (turns > 10'000'000) throw std::logic_error("ManualLoop: callbacks without end");
      const auto node = queue_.extract(queue_.begin());
      due_.erase(node.key().second);
      if (clock_.mono() < node.key().first) clock_.move(node.key().first - clock_.mono());
      node.mapped()();
    }
  }

  ManualClock clock_;
  TimerId last_id_ = 0;
  std::map<std::pair<MonoTime, TimerId>, Callback> queue_;
  std::map<TimerId, MonoTime> due_;
};

}  // namespace core
