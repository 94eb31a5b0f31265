#include "plan/plan.hpp"

#include <fmt/format.h>

#include "core/hostlist.hpp"

namespace plan {
namespace {

core::Json describe_step(const Step& step) {
  core::Json out{{"id", step.id.text()}, {"reason", step.reason}};
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
  if (!intent.remaining.empty()) out["remaining"] = intent.lines();
  if (intent.pods != 0) out["pods"] = intent.pods;
  if (intent.jobs != 0) out["jobs"] = intent.jobs;
  return out;
}

}  // namespace

StepId StepId::of(std::string other_name, std::string other_variant) const {
  return {verb, kind, std::move(other_name), std::move(other_variant)};
}

std::string StepId::text() const {
  std::string out = verb;
  for (const std::string* word : {&kind, &name}) {
    if (!word->empty()) out += " " + *word;
  }
  if (!variant.empty()) out += ": " + variant;
  return out;
}

void Intent::add(const StepId& id) {
  remaining[id.of("")].insert(id.name);
}

std::vector<std::string> Intent::lines() const {
  constexpr std::size_t kLongest = 200;
  std::vector<std::string> out;
  for (const auto& [what, names] : remaining) {
    std::string list = core::compress_hostlist({names.begin(), names.end()});
    if (list.size() > kLongest) list = list.substr(0, list.rfind(',', kLongest)) + ",...";
    std::string& line = out.emplace_back(what.text());
    if (!list.empty()) line += " " + list;
    if (names.size() > 1) line += fmt::format(" ({})", names.size());
  }
  return out;
}

std::string Intent::text() const {
  std::string out = summary;
  for (const std::string& line : lines()) out += (out.empty() ? "" : "; ") + line;
  return out;
}

Lane& Lane::add(Step step) {
  groups_.back().push_back(std::move(step));
  return *this;
}

Lane& Lane::add(std::optional<Step> step) {
  return step ? add(std::move(*step)) : *this;
}

Lane& Lane::then() {
  if (!groups_.back().empty()) groups_.emplace_back();
  return *this;
}

Lane& Plan::lane(std::string_view name) {
  const auto it = lanes_.find(name);
  return it != lanes_.end() ? it->second : lanes_.emplace(std::string(name), Lane{}).first->second;
}

StepIds Plan::wished() const {
  StepIds out(remembered_.begin(), remembered_.end());
  for (const auto& [name, lane] : lanes_) {
    for (const auto& group : lane.groups()) {
      for (const Step& step : group) out.insert(step.id);
    }
  }
  return out;
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

Intent Plan::whole_intent() const {
  Intent out = intent;
  if (!out.remaining.empty()) return out;
  for (const auto& [name, lane] : lanes_) {
    for (const auto& group : lane.groups()) {
      for (const Step& step : group) out.add(step.id);
    }
  }
  return out;
}

core::Json Plan::describe() const {
  core::Json out = core::Json::object();
  for (const auto& [name, lane] : lanes_) {
    core::Json groups = describe_lane(lane);
    if (!groups.empty()) out["lanes"][name] = std::move(groups);
  }
  for (const Need& need : needs_) out["needs"][need.id] = need.query ? need.query->describe() : core::Json();
  if (wake_) out["wake"] = {{"afterMs", wake_->count()}, {"why", wake_reason_}};
  if (!waits_on_.empty()) out["waitsOn"] = waits_on_;
  core::Json about = describe_intent(whole_intent());
  if (!about.empty()) out["intent"] = std::move(about);
  return out;
}

}  // namespace plan
