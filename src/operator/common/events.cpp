#include "operator/common/events.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "kube/acts.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/status.hpp"

namespace op {
namespace {

/// Returns the time when the event was last seen. Some controllers write the old fields for this time, and some write the new
/// fields.
core::WallTime last_seen(const core::Json& event) {
  core::WallTime last;
  for (const std::string& text :
       {core::get_string(event, {"series", "lastObservedTime"}), core::get_string(event, {"deprecatedLastTimestamp"}),
        core::get_string(event, {"eventTime"}), core::get_string(event, {"metadata", "creationTimestamp"})}) {
    if (const auto time = core::parse_rfc3339(text)) last = std::max(last, *time);
  }
  return last;
}

}  // namespace

plan::Need need_events(std::string_view kind, const kube::ObjectMeta& object, std::string_view reason) {
  constexpr int kMost = 100;
  auto list = std::make_shared<kube::List>();
  list->resource = kube::resources::kEvent;
  list->ns = object.ns;
  list->field_selector = "regarding.uid=" + object.uid + ",reason=" + std::string(reason);
  list->limit = kMost;
  return {"events of " + std::string(kind) + " " + object.name, std::move(list)};
}

std::string newest_note(const plan::Fact& events, core::WallTime since) {
  std::string note;
  if (!events.value) return note;
  for (const core::Json& event : (*events.value)["items"]) {
    const core::WallTime seen = last_seen(event);
    if (seen < since) continue;
    since = seen;
    note = core::get_string(event, {"note"});
  }
  return one_line(note);
}

}  // namespace op
