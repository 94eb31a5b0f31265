// The work queue: which key is to be looked at next.
//
// Pure data: the time is passed in, and the owner sets a timer by next_due().
//
// Requires: done() for each key that was popped.
// Guarantees: a key stands in it once at most, and is never handed out twice at once: what is added while its key is being
// processed runs again after done().
//
//   queue.add(key, now);
//   while (auto k = queue.pop(now)) { ...; queue.done(*k, now); }
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "core/clock.hpp"
#include "core/random.hpp"
#include "run/key.hpp"

namespace run {

/// A key of one controller.
struct WorkKey {
  std::uint32_t controller = 0;
  Key key;
  friend auto operator<=>(const WorkKey&, const WorkKey&) = default;
};

struct QueueOptions {
  core::Duration backoff_base{20};
  core::Duration backoff_cap{30000};
  /// What one point of priority is worth: a ready key passes others that became ready up to this much earlier. So a key of
  /// priority -100 waits 10 s at most behind fresh ones, and none starves.
  core::Duration per_priority{100};
};

class WorkQueue {
 public:
  explicit WorkQueue(core::Random& random, QueueOptions options = {}) : random_(&random), options_(options) {}

  /// Makes a key ready. Of two wishes the earlier time and the higher priority win.
  void add(const WorkKey& key, core::MonoTime now, int priority = 0) { add_at(key, now, now, priority); }
  void add_after(const WorkKey& key, core::Duration delay, core::MonoTime now, int priority = 0) {
    add_at(key, now + delay, now, priority);
  }
  /// Counts a failure and adds the key after base * 2^(failures-1), at most the cap, +-25 %, and no earlier than `at_least`.
  /// Returns the delay.
  core::Duration add_backoff(const WorkKey& key, core::MonoTime now, core::Duration at_least = core::Duration{0});
  /// The key did well: its next failure starts from the base again.
  void forget(const WorkKey& key) { failures_.erase(key); }
  [[nodiscard]] int failures(const WorkKey& key) const;
  [[nodiscard]] bool has_failures() const { return !failures_.empty(); }

  /// The next ready key for which `may` is true, which counts as processing from now on.
  std::optional<WorkKey> pop(core::MonoTime now, const std::function<bool(const WorkKey&)>& may = {});
  /// Ends the processing of a key.
  void done(const WorkKey& key, core::MonoTime now);

  /// When the next waiting key becomes ready; nullopt when none waits. (Ready keys are had at once.)
  [[nodiscard]] std::optional<core::MonoTime> next_due() const;
  [[nodiscard]] bool has_ready(core::MonoTime now) const;
  [[nodiscard]] std::size_t depth() const { return items_.size(); }  ///< Waiting, ready, or to run again.
  /// What client-go's metrics count, of one controller: keys whose time has come, be they processed just now, but none that are
  /// delayed; and how often a key came to be one of these.
  struct Counts {
    std::size_t due = 0;
    std::uint64_t adds = 0;
  };
  [[nodiscard]] Counts counts(std::uint32_t controller, core::MonoTime now) const;
  [[nodiscard]] std::size_t processing() const { return processing_.size(); }

  /// How long the key popped last stood ready.
  [[nodiscard]] core::Duration last_wait() const { return last_wait_; }

 private:
  struct Item {
    core::MonoTime due;  ///< When it becomes (became) ready.
    int priority = 0;
    std::uint64_t sequence = 0;
    bool ready = false;    ///< Stands in ready_; else in waiting_, unless its key is being processed.
    bool counted = false;  ///< In adds_.
    core::Duration rank{0};
  };
  void add_at(const WorkKey& key, core::MonoTime due, core::MonoTime now, int priority);
  void place(const WorkKey& key, Item& item, core::MonoTime now);
  void unplace(const WorkKey& key, const Item& item);
  void promote(core::MonoTime now);

  core::Random* random_;
  QueueOptions options_;
  std::map<WorkKey, Item> items_;
  std::set<std::tuple<core::Duration, std::uint64_t, WorkKey>> ready_;  ///< By rank, then order of becoming ready.
  std::set<std::pair<core::MonoTime, WorkKey>> waiting_;                ///< By due time.
  std::set<WorkKey> processing_;
  std::map<WorkKey, int> failures_;
  std::map<std::uint32_t, std::uint64_t> adds_;  ///< By controller.
  std::uint64_t sequence_ = 0;
  core::Duration last_wait_{0};
};

}  // namespace run
