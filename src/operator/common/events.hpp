// Reads from events why an object is not created, or why a claim gets no volume. Only events show these reasons, and no cache
// has events. So plans read the events live, with a plan::Need.
#pragma once

#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "kube/object.hpp"
#include "plan/plan.hpp"

namespace op {

/// Returns the plan::Need to read the events with this reason about an object. The id of the Need is "events of KIND NAME".
[[nodiscard]] plan::Need need_events(std::string_view kind, const kube::ObjectMeta& object, std::string_view reason);
/// Returns the note of the newest event. "": there is none. Ignores events before `since`, because they are about an earlier
/// problem.
[[nodiscard]] std::string newest_note(const plan::Fact& events, core::WallTime since);

}  // namespace op
