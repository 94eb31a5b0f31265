// What became of steps, kept from pass to pass as the manager does it; for the small worlds of tests.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "core/clock.hpp"
#include "core/result.hpp"
#include "plan/plan.hpp"

namespace op::testing {

/// Kept is what the plan names or asks to remember.
inline void forget_outcomes(plan::Outcomes& outcomes, const plan::Plan& made) {
  std::set<std::string> kept(made.remembered().begin(), made.remembered().end());
  for (const auto& [name, lane] : made.lanes()) {
    for (const auto& group : lane.groups()) {
      for (const plan::Step& step : group) kept.insert(step.id);
    }
  }
  std::erase_if(outcomes, [&](const auto& item) { return !kept.contains(item.first); });
}

/// Counts how often in a row a step was done, or failed.
inline void note_outcome(plan::Outcomes& outcomes, const std::string& id, const core::Result<void>& result,
                         core::MonoTime now) {
  plan::Outcome& outcome = outcomes[id];
  const auto state = result ? plan::Outcome::State::kDone : plan::Outcome::State::kFailed;
  if (outcome.count == 0 || outcome.state != state) outcome = {state, 0, now, now, {}};
  ++outcome.count;
  outcome.last = now;
  outcome.error = result ? std::nullopt : std::optional(result.error());
}

}  // namespace op::testing
