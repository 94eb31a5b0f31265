// The work queue: decides which key is processed next.
//
// Pure data: the caller passes the time, and sets a timer for next_due().
//
// Requires: the caller calls done() for each key that pop() has returned.
// Guarantees: a key is queued at most once, and never processed twice at once. A key that is added while it is being
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
  /// The waiting time that one point of priority is worth. Ready keys run in the order of the time when they became ready,
  /// minus this much for each point. A key of priority -100 runs before keys of priority 0 that become ready over 10 s later.
  core::Duration per_priority{100};
};

class WorkQueue {
 public:
  /// Returns the share of a key (Controller::share). The caller of pop() can exclude the keys of some shares.
  using Share = std::function<std::string(const WorkKey&)>;
  /// Without `share`, all keys have the share "".
  explicit WorkQueue(core::Random& random, QueueOptions options = {}, Share share = {})
      : random_(&random), options_(options), share_(std::move(share)) {}

  /// Makes a key ready. A key that is already queued gets the earlier time, the higher priority, and its present share.
  void add(const WorkKey& key, core::MonoTime now, int priority = 0) { add_at(key, now, now, priority); }
  void add_after(const WorkKey& key, core::Duration delay, core::MonoTime now, int priority = 0) {
    add_at(key, now + delay, now, priority);
  }
  /// Counts a failure, and adds the key after a delay of backoff_base * 2^(failures-1), at most backoff_cap, varied at random
  /// by 25 %, but at least `at_least`. Returns the delay.
  core::Duration add_backoff(const WorkKey& key, core::MonoTime now, core::Duration at_least = core::Duration{0});
  /// Resets the key's failures: its next delay starts from the base again.
  void forget(const WorkKey& key) { failures_.erase(key); }
  [[nodiscard]] int failures(const WorkKey& key) const;
  [[nodiscard]] bool has_failures() const { return !failures_.empty(); }

  /// Returns the next ready key of the shares for which `may` returns true; nullopt if there is none. The key counts as being
  /// processed until done(). Skips the ready keys of a refused share all at once.
  std::optional<WorkKey> pop(core::MonoTime now, const std::function<bool(const std::string& share)>& may = {});
  /// Ends the processing of a key.
  void done(const WorkKey& key, core::MonoTime now);

  /// Returns when the next waiting key becomes ready; nullopt if none waits. Ready keys do not count.
  [[nodiscard]] std::optional<core::MonoTime> next_due() const;
  [[nodiscard]] bool has_ready(core::MonoTime now) const;
  [[nodiscard]] std::size_t depth() const { return items_.size(); }  ///< The keys that wait, are ready, or must run again.
  /// The counts of client-go's metrics, for one controller. `due` is the number of keys whose due time has passed, including
  /// keys that must run again after their current pass. `adds` is how often a key became due.
  struct Counts {
    std::size_t due = 0;
    std::uint64_t adds = 0;
  };
  [[nodiscard]] Counts counts(std::uint32_t controller, core::MonoTime now) const;
  [[nodiscard]] std::size_t processing() const { return processing_.size(); }

  /// Returns how long the last popped key had been ready.
  [[nodiscard]] core::Duration last_wait() const { return last_wait_; }

 private:
  struct Item {
    core::MonoTime due;  ///< When the item becomes or became ready.
    int priority = 0;
    std::uint64_t sequence = 0;
    bool ready = false;    ///< The item is in ready_. If false, it is in waiting_, unless its key is being processed.
    bool counted = false;  ///< The item counts in adds_.
    core::Duration rank{0};
    std::string share;  ///< The share under which it is in ready_.
  };
  using Ready = std::set<std::tuple<core::Duration, std::uint64_t, WorkKey>>;
  void add_at(const WorkKey& key, core::MonoTime due, core::MonoTime now, int priority);
  void place(const WorkKey& key, Item& item, core::MonoTime now);
  void unplace(const WorkKey& key, const Item& item);
  void promote(core::MonoTime now);

  core::Random* random_;
  QueueOptions options_;
  Share share_;
  std::map<WorkKey, Item> items_;
  std::map<std::string, Ready> ready_;                    ///< Maps each share to its ready keys, in order.
  std::set<std::pair<core::MonoTime, WorkKey>> waiting_;  ///< Sorted by due time.
  std::set<WorkKey> processing_;
  std::map<WorkKey, int> failures_;
  std::map<std::uint32_t, std::uint64_t> adds_;  ///< Maps each controller to how often its keys became due.
  std::uint64_t sequence_ = 0;
  core::Duration last_wait_{0};
};

}  // namespace run
