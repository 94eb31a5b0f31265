// The simulator's loop: virtual time, and a seeded choice among the events that are due. One seed gives one history.
//
//   sim::SimLoop loop(seed);
//   sim::SimHost host(loop);            // one process: its own wall clock, may be paused
//   loop.run_for(60s);
//   bool ok = loop.run_until([&] { return settled(); }, 10min);
//
// If events must stay in order (the bytes of one connection), schedule only one of them at a time. Unit tests of single parts
// use core/testing/manual_loop.hpp instead, where the order never varies.
#pragma once

#include <time.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/loop.hpp"
#include "sim/base/random.hpp"

namespace sim {

/// Returns the CPU time that this thread has used, in seconds.
inline double cpu_seconds() {
  timespec out{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &out);
  return static_cast<double>(out.tv_sec) + static_cast<double>(out.tv_nsec) * 1e-9;
}

class SimClock final : public core::Clock {
 public:
  [[nodiscard]] core::MonoTime mono() const override { return mono_; }
  [[nodiscard]] core::WallTime wall() const override { return wall_; }
  void advance(core::Duration by) {
    mono_ = mono_ + by;
    wall_ = wall_ + by;
  }
  /// Moves the wall clock forward or back. The monotonic clock does not jump.
  void jump(core::Duration by) { wall_ = wall_ + by; }

 private:
  core::MonoTime mono_{core::Duration{1'000'000}};
  core::WallTime wall_{core::Duration{1'767'323'045'000}};  // 2026-01-02T03:04:05Z
};

class SimLoop final : public core::Loop {
 public:
  explicit SimLoop(std::uint64_t seed) : random_(seed) {}

  [[nodiscard]] const core::Clock& clock() const override { return clock_; }
  /// Returns the random source from which all parts of the history draw.
  [[nodiscard]] SeededRandom& random() { return random_; }

  TimerId after(core::Duration delay, core::Callback call) override {
    const TimerId id = ++last_id_;
    const core::MonoTime due = clock_.mono() + std::max(delay, core::Duration{0});
    queue_.emplace(Place{due, id}, std::move(call));
    due_.emplace(id, due);
    return id;
  }

  void cancel(TimerId id) override {
    const auto it = due_.find(id);
    if (it == due_.end()) return;
    const auto gone = queue_.extract({it->second, id});  // destroyed on return, because that may cancel other timers
    due_.erase(it);
  }

  void offload(core::Callback work, core::Callback then) override {
    after(core::Duration{0}, [this, work = std::move(work), then = std::move(then)]() mutable {
      work();
      after(core::Duration{0}, std::move(then));
    });
  }

  /// Runs one event. If no event is due, advances the clock to the next one first. Returns false if there are no events.
  bool step() {
    if (queue_.empty()) return false;
    auto pick = queue_.begin();
    if (clock_.mono() < pick->first.first) clock_.advance(pick->first.first - clock_.mono());
    std::uint64_t due = 0;
    for (auto it = pick; it != queue_.end() && it->first.first <= clock_.mono() && due < kChoices; ++it) ++due;
    for (std::uint64_t skip = random_.below(due); skip > 0; --skip) ++pick;
    const auto node = queue_.extract(pick);
    due_.erase(node.key().second);
    ++steps_;
    node.mapped()();
    return true;
  }

  /// Runs all events that become due until `by` has passed.
  void run_for(core::Duration by) {
    const core::MonoTime end = clock_.mono() + by;
    while (!queue_.empty() && queue_.begin()->first.first <= end) step();
    if (clock_.mono() < end) clock_.advance(end - clock_.mono());
  }

  /// Runs until `done` returns true, which is checked first and after each event. Returns false if that takes longer than
  /// `limit`.
  bool run_until(const std::function<bool()>& done, core::Duration limit) {
    const core::MonoTime end = clock_.mono() + limit;
    while (!done()) {
      if (queue_.empty() || queue_.begin()->first.first > end) {
        if (clock_.mono() < end) clock_.advance(end - clock_.mono());
        return done();
      }
      step();
    }
    return true;
  }

  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  [[nodiscard]] std::size_t pending() const { return queue_.size(); }

 private:
  using Place = std::pair<core::MonoTime, TimerId>;
  static constexpr std::uint64_t kChoices = 16;

  SimClock clock_;
  SeededRandom random_;
  TimerId last_id_ = 0;
  std::uint64_t steps_ = 0;
  std::map<Place, core::Callback> queue_;
  std::unordered_map<TimerId, core::MonoTime> due_;
};

/// One process on the simulated machine. If it is destroyed, all its pending events are dropped, like at a crash. If it is
/// paused, its events are delayed, like in a stopped process or on a stalled machine. Its wall clock can be wrong.
class SimHost final : public core::Loop {
 public:
  explicit SimHost(SimLoop& loop) : loop_(loop), clock_(loop.clock()), state_(std::make_shared<State>()) {}
  SimHost(const SimHost&) = delete;
  SimHost& operator=(const SimHost&) = delete;
  ~SimHost() override {
    state_->dead = true;
    // The destructor of a callback can call cancel(), so both members are emptied first.
    const auto held = std::exchange(state_->held, {});
    for (const auto& [mine, theirs] : std::exchange(ids_, {})) loop_.cancel(theirs);
  }

  [[nodiscard]] const core::Clock& clock() const override { return clock_; }
  void jump(core::Duration by) { clock_.offset = clock_.offset + by; }

  TimerId after(core::Duration delay, core::Callback call) override {
    const TimerId id = ++last_id_;
    schedule(id, delay, std::move(call));
    return id;
  }

  void cancel(TimerId id) override {
    std::erase_if(state_->held, [&](const auto& entry) { return entry.first == id; });
    const auto it = ids_.find(id);
    if (it == ids_.end()) return;
    const TimerId theirs = it->second;
    ids_.erase(it);
    loop_.cancel(theirs);
  }

  void offload(core::Callback work, core::Callback then) override {
    after(core::Duration{0}, [this, work = std::move(work), then = std::move(then)]() mutable {
      work();
      after(core::Duration{0}, std::move(then));
    });
  }

  /// Return the real CPU time in seconds that the callbacks of this process took: all of them together, and the longest one.
  [[nodiscard]] double cpu() const { return state_->cpu; }
  [[nodiscard]] double longest_call() const { return state_->longest; }

  void pause() { state_->paused = true; }
  /// Makes the events that became due during the pause due now. Like all events that are due, they run in random order.
  void resume() {
    state_->paused = false;
    for (auto& [id, call] : std::exchange(state_->held, {})) schedule(id, core::Duration{0}, std::move(call));
  }

 private:
  void schedule(TimerId id, core::Duration delay, core::Callback call) {
    ids_[id] = loop_.after(delay, [this, id, state = state_, call = std::move(call)]() mutable {
      if (state->dead) return;
      ids_.erase(id);
      if (state->paused) {
        state->held.emplace_back(id, std::move(call));
        return;
      }
      const double begun = cpu_seconds();
      call();
      const double took = cpu_seconds() - begun;
      state->cpu += took;
      state->longest = std::max(state->longest, took);
    });
  }

  struct ShiftedClock final : core::Clock {
    explicit ShiftedClock(const core::Clock& b) : base(b) {}
    [[nodiscard]] core::MonoTime mono() const override { return base.mono(); }
    [[nodiscard]] core::WallTime wall() const override { return base.wall() + offset; }
    const core::Clock& base;
    core::Duration offset{0};
  };
  struct State {
    bool dead = false;
    bool paused = false;
    double cpu = 0, longest = 0;
    std::vector<std::pair<TimerId, core::Callback>> held;
  };

  SimLoop& loop_;
  ShiftedClock clock_;
  std::shared_ptr<State> state_;
  TimerId last_id_ = 0;
  std::unordered_map<TimerId, TimerId> ids_;
};

}  // namespace sim
