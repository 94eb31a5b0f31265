#include "run/pass.hpp"

#include <algorithm>
#include <stdexcept>

#include "core/retry.hpp"

namespace run {

std::string_view to_string(PassState state) {
  switch (state) {
    case PassState::kObserving:
      return "observing";
    case PassState::kPlanning:
      return "planning";
    case PassState::kNeeding:
      return "needing";
    case PassState::kActing:
      return "acting";
    case PassState::kGated:
      return "gated";
    case PassState::kDone:
      return "done";
  }
  return "?";
}

bool may_follow(PassState from, PassState to) {
  switch (from) {
    case PassState::kObserving:
      return to == PassState::kPlanning || to == PassState::kDone;
    case PassState::kPlanning:
      return to == PassState::kNeeding || to == PassState::kActing || to == PassState::kDone;
    case PassState::kNeeding:
      return to == PassState::kObserving;
    case PassState::kActing:
      return to == PassState::kGated || to == PassState::kDone;
    case PassState::kGated:
      return to == PassState::kDone;
    case PassState::kDone:
      return false;
  }
  return false;
}

void Pass::move_to(PassState to) {
  if (!may_follow(state_, to)) {
    throw std::logic_error("pass of " + key.key.str() + ": " + std::string(to_string(to)) + " after " +
                           std::string(to_string(state_)));
  }
  state_ = to;
}

std::vector<const plan::Step*> Pass::tried() const {
  std::vector<const plan::Step*> steps;
  for (const auto& [name, lane] : plan.lanes()) {
    for (const auto& group : lane.groups()) {
      for (const plan::Step& step : group) {
        if (!(step.act && step.act->incidental()) && result.outcomes.contains(step.id)) steps.push_back(&step);
      }
    }
  }
  return steps;
}

bool Pass::may_still_write() const {
  return !gates.empty() && std::ranges::any_of(result.outcomes, [](const auto& entry) {
    return entry.second.error && core::retry_of(entry.second.error->code) == core::Retry::kSettle;
  });
}

std::vector<core::Field> Pass::fields(std::vector<core::Field> more) const {
  std::vector<core::Field> all = {
      {"controller", controller}, {"namespace", key.key.ns}, {"name", key.key.name}, {"reconcileID", id}};
  for (core::Field& field : more) all.push_back(std::move(field));
  return all;
}

}  // namespace run
