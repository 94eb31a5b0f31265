#include "enlist/juju/event.hpp"

#include <algorithm>

namespace enlist::juju {

core::Result<Event> event_from(const std::map<std::string, std::string>& environment) {
  const auto value = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  Event out{.name = value("JUJU_HOOK_NAME"), .unit = value("JUJU_UNIT_NAME"), .app = {}};
  if (const std::string path = value("JUJU_DISPATCH_PATH"); !path.empty()) {
    constexpr std::string_view kHooks = "hooks/", kActions = "actions/";
    const bool action = path.starts_with(kActions);
    if (!action && !path.starts_with(kHooks)) return core::fail(core::ErrorCode::kInvalid, "the charm has no " + path);
    out.action = action ? path.substr(kActions.size()) : "";
    out.name = action ? "" : path.substr(kHooks.size());
  }
  if (out.name.empty() && out.action.empty())
    return core::fail(core::ErrorCode::kInvalid, "neither JUJU_DISPATCH_PATH nor JUJU_HOOK_NAME is set: Juju runs this");
  out.app = app_of(out.unit);
  if (out.app.empty() || out.app == out.unit) return core::fail(core::ErrorCode::kInvalid, "JUJU_UNIT_NAME is not set");
  out.model = value("JUJU_MODEL_UUID");
  out.relation_id = value("JUJU_RELATION_ID");
  out.remote_app = value("JUJU_REMOTE_APP");
  out.departing_unit = value("JUJU_DEPARTING_UNIT");
  return out;
}

std::string app_of(std::string_view unit) {
  return std::string(unit.substr(0, unit.find('/')));
}

std::string node_of(std::string_view unit) {
  std::string out(unit);
  std::ranges::replace(out, '/', '-');
  return out;
}

}  // namespace enlist::juju
