#include "run/repeats.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>

namespace run {

namespace {

/// Removes timestamps and resource versions, because a repeated step differs in them.
void drop_times(core::Json& json) {
  if (json.is_object()) {
    json.erase("resourceVersion");
    json.erase("lastTransitionTime");
  }
  if (!json.is_structured()) return;
  for (core::Json& member : json) drop_times(member);
}

std::string content_of(const plan::Step& step) {
  core::Json what = step.act ? step.act->describe() : core::Json();
  drop_times(what);
  return what.dump(-1, ' ', false, core::Json::error_handler_t::replace);
}

std::size_t hash(std::string_view text) {
  return std::hash<std::string_view>{}(text);
}

std::size_t id_of(const plan::Step& step) {
  return hash(step.id.of(step.id.name).text());
}

core::Duration longest_of(const plan::Step& step) {
  switch (step.act ? step.act->withhold() : plan::Act::Withhold::kBriefly) {
    case plan::Act::Withhold::kNever:
      return core::Duration{0};
    case plan::Act::Withhold::kBriefly:
      return Repeats::kLongestElse;
    case plan::Act::Withhold::kLong:
      break;
  }
  return Repeats::kLongest;
}

}  // namespace

bool Repeats::Done::forgotten(core::MonoTime now) const {
  return count < kTimes ? now - first > kWindow : now - last > kForgotten;
}

core::MonoTime Repeats::Done::due() const {
  if (count < kTimes) return last;
  return last + std::min(longest, core::Duration{1000} * (1 << std::min(count - kTimes, 10)));
}

bool Repeats::done(const plan::Step& step, core::MonoTime now) {
  const std::string content = content_of(step);
  const Done once{hash(content), longest_of(step), 1, now, now};
  const auto [it, is_new] = steps_.try_emplace(id_of(step), once);
  Done& before = it->second;
  if (is_new) return false;
  if (before.content != once.content || before.forgotten(now)) {
    before = once;
    return false;
  }
  before.last = now;
  return ++before.count == kTimes;
}

std::optional<core::MonoTime> Repeats::withheld_until(const plan::Step& step, core::MonoTime now) const {
  const auto it = steps_.find(id_of(step));
  if (it == steps_.end() || it->second.due() <= now || it->second.content != hash(content_of(step))) return std::nullopt;
  return it->second.due();
}

void Repeats::forget(core::MonoTime now) {
  std::erase_if(steps_, [&](const auto& step) { return step.second.forgotten(now); });
}

}  // namespace run
