#include "operator/nodeset/draft.hpp"

#include <algorithm>

namespace op::nodeset {
namespace {

constexpr core::Duration kEventAgain{10 * 60 * 1000};

}  // namespace

bool Draft::step(plan::Lane& lane, plan::Step step) {
  if (!wish_now(step.id)) return false;
  if (!has_room(1)) {
    wake(kPassFull);
    return false;
  }
  --room_;
  lane.add(std::move(step));
  return true;
}

void Draft::wish(const plan::StepId& id) {
  wishes_.push_back(id);
  if (view_.in.outcomes.contains(id)) remember(id);
}

bool Draft::wish_now(const plan::StepId& id) {
  wish(id);
  const core::Duration left = view_.retry_in(id);
  if (left.count() <= 0) return true;
  wake_after(left, "trying again: " + id.text());
  return false;
}

void Draft::event(std::string_view type, std::string_view reason, std::string_view action, std::string note) {
  lane("event").add(view_.event_step(type, reason, action, std::move(note)));
}

void Draft::lasting_event(std::string_view type, std::string_view reason, std::string_view action, std::string note) {
  plan::Step step = view_.event_step(type, reason, action, std::move(note));
  const auto before = view_.in.outcomes.find(step.id);
  if (before != view_.in.outcomes.end() && view_.in.mono - before->second.last < kEventAgain) return remember(before->first);
  lane("event").add(std::move(step));
}

void Draft::wrong(std::string_view reason, std::string message, std::string_view action) {
  if (std::ranges::none_of(problems_, [&](const Problem& problem) { return problem.reason == reason; }))
    lasting_event("Warning", reason, action, message);
  problem({std::string(reason), std::move(message)});
}

void Draft::waiting(std::string_view reason, std::string message) {
  problem({std::string(reason), std::move(message), Problem::Kind::kComing});
}

void Draft::waiting(const Wait& wait) {
  lasting_event("Normal", wait.reason, "Wait", wait.note);
  if (wait.over()) return;
  waiting(wait.reason, wait.note);
  wake_after(std::min(wait.left, core::Duration{1000}), wait.note);
}

void Draft::up_to_users(std::string_view reason, std::string message) {
  up_to_users_.push_back({std::string(reason), std::move(message)});
}

}  // namespace op::nodeset
