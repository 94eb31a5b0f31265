// The outcomes of one key's steps, kept from pass to pass. The next observation includes them, so that plans can wait, give up
// and report.
#pragma once

#include "plan/plan.hpp"

namespace plan {

/// Returns the outcome of a step that was tried once and ended at `now` with `result`.
[[nodiscard]] Outcome tried(const core::Result<void>& result, core::MonoTime now);

class Ledger {
 public:
  [[nodiscard]] const Outcomes& outcomes() const { return outcomes_; }
  /// Drops the outcomes of steps that the plan neither contains nor remembers (Plan::remember).
  void keep(const Plan& made);
  /// Adds the outcomes of a pass. The count of a step goes up if the step ended in the same state (done or failed) as before.
  /// Otherwise the count starts again from 1.
  void add(const Outcomes& pass);

 private:
  Outcomes outcomes_;
};

/// Returns the needs of a plan that are not answered yet. If there are any, the plan is not executed. Instead, the plan is made
/// again with the answers.
[[nodiscard]] std::vector<Need> open_needs(const Plan& made, const Facts& known);

}  // namespace plan
