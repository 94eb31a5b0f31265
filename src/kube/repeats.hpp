// The steps that a key does again and again, because something else changes back what they wrote: a second operator, a mutating
// webhook, a default of the API server. Such a step is withheld, longer each time; one that does something else than before
// never is. Pure data: the time is passed in.
#pragma once

#include <cstddef>
#include <map>
#include <optional>

#include "core/clock.hpp"
#include "plan/plan.hpp"

namespace kube {

class Repeats {
 public:
  /// Done so often within kWindow, a step is withheld: for 1 s, then for twice as long after each time it is done.
  static constexpr int kTimes = 5;
  static constexpr core::Duration kWindow{60000};
  static constexpr core::Duration kLongest{300000};
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
    int count = 1;  ///< Times in a row.
    core::MonoTime first, last;

    [[nodiscard]] bool forgotten(core::MonoTime now) const;
    [[nodiscard]] core::MonoTime due() const;
  };
  std::map<std::size_t, Done> steps_;  ///< By the hash of their id: there can be many, and most are done once.
};

}  // namespace kube
