// Holds passes until the caches show the writes of these passes.
//
// A pass is held while one of its gates is closed. Gates are checked whenever a cache changes, and once a second. A check
// examines all held passes. To limit the cost, there is at most one check in n/20 milliseconds if n passes are held. When a
// pass has been held for the time `cap`, its closed gates are settled (plan::Gate::settle), and again after each further `cap`.
// If the outcome of a gate's write can be read, the pass continues to wait for the caches. Otherwise the gate is dropped,
// because the key must not wait forever for a server that possibly never returns.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/log.hpp"
#include "core/loop.hpp"
#include "run/pass.hpp"

namespace run {

class Gates {
 public:
  /// Calls `opened` for each pass whose gates are all open or dropped, after releasing the pass. `opened` is allowed to hold
  /// other passes.
  Gates(core::Loop& loop, core::Logger& logger, core::Duration cap, std::function<void(const PassPtr&)> opened);

  /// Drops the open gates of a pass. Returns true if no gate is left, so that there is nothing to wait for.
  static bool all_open(Pass& pass);
  /// Holds a pass. Requires that the pass is in the state gated and has a closed gate.
  void hold(const PassPtr& pass);
  /// Checks all gates now, or soon if many passes are held. Call it after the caches have changed.
  void check();
  /// Releases and returns all held passes, without calling `opened`.
  [[nodiscard]] std::vector<PassPtr> drop_all();

  [[nodiscard]] bool holds(const WorkKey& key) const { return held_.contains(key); }
  /// Returns what each held pass waits for. For logs and tests.
  [[nodiscard]] std::vector<std::string> describe() const;

 private:
  void tick();
  void check_all();
  void settle(Pass& pass);

  core::Loop& loop_;
  core::Logger& logger_;
  core::Duration cap_;
  std::function<void(const PassPtr&)> opened_;
  std::map<WorkKey, PassPtr> held_;
  core::Timer tick_, soon_;
  core::MonoTime checked_;  ///< When check_all() last ran.
};

}  // namespace run
