// What became of the steps of one key, kept from pass to pass: the next Observed has it, so that plans can wait, give up and
// tell.
#pragma once

#include "plan/plan.hpp"

namespace plan {

/// A step that was tried once, and ended now.
[[nodiscard]] Outcome tried(const core::Result<void>& result, core::MonoTime now);

class Ledger {
 public:
  [[nodiscard]] const Outcomes& outcomes() const { return outcomes_; }
  /// Drops what the plan neither has as a step nor remembers.
  void keep(const Plan& made);
  /// Adds the outcomes of a pass. A step that ended as it did before counts up; one that ended otherwise begins anew.
  void add(const Outcomes& pass);

 private:
  Outcomes outcomes_;
};

/// The needs of a plan that are not answered yet: while there are any, the plan is made again with their answers, and nothing
/// of it is done.
[[nodiscard]] std::vector<Need> open_needs(const Plan& made, const Facts& known);

}  // namespace plan
