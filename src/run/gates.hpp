// The passes that wait until the caches show what they wrote.
//
// A pass is held for as long as one of its gates is closed. Gates are looked at whenever a cache changes, and once a second.
// What stays closed for `cap` is settled (plan::Gate::settle): where somebody can be asked, it goes on waiting for the caches;
// else it is given up, because what is older than the write is evidence of nothing.
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
  /// `opened` is called for each pass whose gates are all open or given up, after it is held no longer. It may hold others.
  Gates(core::Loop& loop, core::Logger& logger, core::Duration cap, std::function<void(const PassPtr&)> opened);

  /// Drops the gates of a pass that are open already. True: none is left, there is nothing to wait for.
  static bool all_open(Pass& pass);
  /// Requires that the pass is gated and has a closed gate.
  void hold(const PassPtr& pass);
  /// Looks at all gates: the caches have changed.
  void check();
  /// Holds nothing any longer; gives what was held. `opened` is not called.
  [[nodiscard]] std::vector<PassPtr> drop_all();

  [[nodiscard]] bool holds(const WorkKey& key) const { return held_.contains(key); }
  /// What each pass waits for. For logs and tests.
  [[nodiscard]] std::vector<std::string> describe() const;

 private:
  void tick();
  void settle(Pass& pass);

  core::Loop& loop_;
  core::Logger& logger_;
  core::Duration cap_;
  std::function<void(const PassPtr&)> opened_;
  std::map<WorkKey, PassPtr> held_;
  core::Timer tick_;
};

}  // namespace run
