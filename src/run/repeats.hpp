// Detects steps that a key repeats because something else undoes them: a second operator, a mutating webhook, a default of the
// API server. Such a step is withheld, each time for longer. A step whose content has changed is never withheld. Pure data: the
// caller passes the time.
#pragma once

#include <cstddef>
#include <map>
#include <optional>

#include "core/clock.hpp"
#include "plan/plan.hpp"

namespace run {

class Repeats {
 public:
  /// A step that ran this often within kWindow is withheld for 1 s, and for twice as long after each further run.
  static constexpr int kTimes = 5;
  static constexpr core::Duration kWindow{60000};
  static constexpr core::Duration kLongest{300000};     ///< The longest time for which a step is withheld.
  static constexpr core::Duration kLongestElse{10000};  ///< The longest time for acts of plan::Act::Withhold::kBriefly.
  /// If a withheld step has not run for this long, its runs are counted from 1 again.
  static constexpr core::Duration kForgotten{600000};

  /// Records that the step ran. Returns true if the step is withheld from this run on.
  bool done(const plan::Step& step, core::MonoTime now);
  /// Returns when the step may run; nullopt if it may run now.
  [[nodiscard]] std::optional<core::MonoTime> withheld_until(const plan::Step& step, core::MonoTime now) const;
  /// Drops the steps whose next run would be counted as the first one again.
  void forget(core::MonoTime now);
  [[nodiscard]] std::size_t size() const { return steps_.size(); }

 private:
  struct Done {
    std::size_t content = 0;    ///< The hash of what the step did.
    core::Duration longest{0};  ///< The longest time for which the step is withheld.
    int count = 1;              ///< How many times in a row the step ran.
    core::MonoTime first, last;

    [[nodiscard]] bool forgotten(core::MonoTime now) const;
    [[nodiscard]] core::MonoTime due() const;
  };
  /// The key is the hash of the step's id without its variant, to save memory: most steps run only once.
  std::map<std::size_t, Done> steps_;
};

}  // namespace run
