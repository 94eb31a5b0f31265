#include "plan/ledger.hpp"

#include <algorithm>
#include <iterator>

namespace plan {

Outcome tried(const core::Result<void>& result, core::MonoTime now) {
  if (result) return {Outcome::State::kDone, 1, now, now, {}};
  return {Outcome::State::kFailed, 1, now, now, result.error()};
}

void Ledger::keep(const Plan& made) {
  if (outcomes_.empty()) return;
  const StepIds wished = made.wished();
  std::erase_if(outcomes_, [&](const auto& entry) { return !wished.contains(entry.first); });
}

void Ledger::add(const Outcomes& pass) {
  for (const auto& [id, outcome] : pass) {
    const auto [it, fresh] = outcomes_.try_emplace(id, outcome);
    if (fresh) continue;
    Outcome& before = it->second;
    if (before.state != outcome.state) {
      before = outcome;
      continue;
    }
    before.count += outcome.count;
    before.last = outcome.last;
    before.error = outcome.error;
  }
}

std::vector<Need> open_needs(const Plan& made, const Facts& known) {
  std::vector<Need> out;
  std::ranges::copy_if(made.needs(), std::back_inserter(out), [&](const Need& need) { return !known.contains(need.id); });
  return out;
}

}  // namespace plan
