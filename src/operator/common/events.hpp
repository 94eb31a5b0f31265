// What only events show about an object: why it is not created, or why a claim gets no volume. No cache has events; a need of a
// plan reads them live.
#pragma once

#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "kube/object.hpp"
#include "plan/plan.hpp"

namespace op {

/// The need for events with this reason about an object. Its id is "events of KIND NAME".
[[nodiscard]] plan::Need need_events(std::string_view kind, const kube::ObjectMeta& object, std::string_view reason);
/// The note of the newest event; "": none. Events before `since` are ignored, because they were about something else.
[[nodiscard]] std::string newest_note(const plan::Fact& events, core::WallTime since);

}  // namespace op
