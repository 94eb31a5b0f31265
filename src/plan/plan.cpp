#include "plan/plan.hpp"

namespace plan {
namespace {

core::Json describe_step(const Step& step) {
  core::Json out{{"id", step.id}, {"reason", step.reason}};
  if (step.act) {
    out["do"] = step.act->describe();
    if (step.act->destructive()) out["destructive"] = true;
  }
  return out;
}

core::Json describe_lane(const Lane& lane) {
  core::Json groups = core::Json::array();
  for (const auto& group : lane.groups()) {
    if (group.empty()) continue;
    core::Json steps = core::Json::array();
    for (const Step& step : group) steps.push_back(describe_step(step));
    groups.push_back(std::move(steps));
  }
  return groups;
}

core::Json describe_intent(const Intent& intent) {
  core::Json out = core::Json::object();
  if (!intent.summary.empty()) out["summary"] = intent.summary;
  if (!intent.remaining.empty()) out["remaining"] = intent.remaining;
  if (intent.pods != 0) out["pods"] = intent.pods;
  if (intent.jobs != 0) out["jobs"] = intent.jobs;
  return out;
}

}  // namespace

Lane& Lane::add(Step step) {
  groups_.back().push_back(std::move(step));
  return *this;
}

Lane& Lane::then() {
  if (!groups_.back().empty()) groups_.emplace_back();
  return *this;
}

Lane& Plan::lane(std::string_view name) {
  const auto it = lanes_.find(name);
  return it != lanes_.end() ? it->second : lanes_.emplace(std::string(name), Lane{}).first->second;
}

void Plan::wake_after(core::Duration delay, std::string why) {
  if (wake_ && *wake_ <= delay) return;
  wake_ = delay;
  wake_reason_ = std::move(why);
}

bool Plan::empty() const {
  return needs_.empty() && step_count() == 0;
}

std::size_t Plan::step_count() const {
  std::size_t count = 0;
  for (const auto& [name, lane] : lanes_) {
    for (const auto& group : lane.groups()) count += group.size();
  }
  return count;
}

core::Json Plan::describe() const {
  core::Json out = core::Json::object();
  for (const auto& [name, lane] : lanes_) {
    core::Json groups = describe_lane(lane);
    if (!groups.empty()) out["lanes"][name] = std::move(groups);
  }
  for (const Need& need : needs_) out["needs"][need.id] = need.query ? need.query->describe() : core::Json();
  if (wake_) out["wake"] = {{"afterMs", wake_->count()}, {"why", wake_reason_}};
  core::Json about = describe_intent(intent);
  if (!about.empty()) out["intent"] = std::move(about);
  return out;
}

}  // namespace plan
