// The steps that a key does again and again, because something else changes back what they wrote: a second operator, a mutating
// webhook, a default of the API server. Such a step is withheld, longer each time; one that does something else than before
// never is. Pure data: the time is passed in.
#pragma once

#include <cstddef>
#include <map>
#include <optional>

#include "core/clock.hpp"
#include "plan/plan.hpp"

namespace run {

class Repeats {
 public:
  /// Done so often within kWindow, a step is withheld: for 1 s, then for twice as long after each time it is done.
  static constexpr int kTimes = 5;
  static constexpr core::Duration kWindow{60000};
  static constexpr core::Duration kLongest{300000};
  static constexpr core::Duration kLongestElse{10000};  ///< Of what users may ask for in turn: plan::Act::withhold.
  /// Not done for this long, it starts anew.
  static constexpr core::Duration kForgotten{600000};

  /// The step was done. True: from now on it is withheld.
  bool done(const plan::Step& step, core::MonoTime now);
  /// When the step may be done, if not now.
  [[nodiscard]] std::optional<core::MonoTime> withheld_until(const plan::Step& step, core::MonoTime now) const;
  /// Drops what has not been repeated.
  void forget(core::MonoTime now);
  [[nodiscard]] std::size_t size() const { return steps_.size(); }

 private:
  struct Done {
    std::size_t content = 0;
    core::Duration longest{0};  ///< Of its waits.
    int count = 1;              ///< Times in a row.
    core::MonoTime first, last;

    [[nodiscard]] bool forgotten(core::MonoTime now) const;
    [[nodiscard]] core::MonoTime due() const;
  };
  /// By the hash of their id without its variant. There can be many, and most are done once.
  std::map<std::size_t, Done> steps_;
};

}  // namespace run
