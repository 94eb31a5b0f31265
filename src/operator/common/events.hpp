// What only events tell of an object: why it is not made, or why a claim gets no volume. No cache holds events; they are read
// live, by a need of a plan.
#pragma once

#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "kube/object.hpp"
#include "plan/plan.hpp"

namespace op {

/// The events about an object that have this reason. The id of the need is "events of KIND NAME".
[[nodiscard]] plan::Need need_events(std::string_view kind, const kube::ObjectMeta& object, std::string_view reason);
/// What the newest of the events says, or "". One from before `since` was about something else.
[[nodiscard]] std::string newest_note(const plan::Fact& events, core::WallTime since);

}  // namespace op
