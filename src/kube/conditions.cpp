#include "kube/conditions.hpp"

#include <algorithm>

#include "kube/acts.hpp"

namespace kube {

bool set_condition(core::Json& conditions, const Condition& condition, std::int64_t observed_generation, core::WallTime now) {
  if (!conditions.is_array()) conditions = core::Json::array();
  core::Json wanted = {{"type", condition.type},
                       {"status", condition.status},
                       {"reason", condition.reason.empty() ? "Unknown" : condition.reason},
                       {"message", condition.message},
                       {"observedGeneration", observed_generation},
                       {"lastTransitionTime", core::format_rfc3339(now)}};
  const auto it =
      std::ranges::find_if(conditions, [&](const core::Json& c) { return core::get_string(c, {"type"}) == condition.type; });
  if (it == conditions.end()) {
    conditions.push_back(std::move(wanted));
    return true;
  }
  const std::string since = core::get_string(*it, {"lastTransitionTime"});
  if (core::get_string(*it, {"status"}) == condition.status && !since.empty()) wanted["lastTransitionTime"] = since;
  if (*it == wanted) return false;
  *it = std::move(wanted);
  return true;
}

const core::Json* find_condition(const core::Json& object, std::string_view type) {
  const core::Json* conditions = core::find(object, {"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return nullptr;
  const auto it = std::ranges::find_if(*conditions, [&](const core::Json& c) { return core::get_string(c, {"type"}) == type; });
  return it == conditions->end() ? nullptr : &*it;
}

bool condition_true(const core::Json& object, std::string_view type) {
  const core::Json* condition = find_condition(object, type);
  return condition != nullptr && core::get_string(*condition, {"status"}) == "True";
}

plan::ActPtr patch_status_if_different(const Resource& resource, const Object& observed, const core::Json& desired) {
  const core::Json* status = core::find(observed.body, {"status"});
  core::Json changes = core::Json::object();
  for (const auto& [name, value] : desired.items()) {
    const core::Json* have = status == nullptr ? nullptr : core::find(*status, {name});
    if (value.is_null()) {
      if (have != nullptr) changes[name] = nullptr;
    } else if (have == nullptr || *have != value) {
      changes[name] = value;
      // A merge patch leaves members that it does not name: those that are no longer wanted must be named.
      if (have == nullptr || !have->is_object() || !value.is_object()) continue;
      for (const auto& [member, old] : have->items()) {
        if (!value.contains(member)) changes[name][member] = nullptr;
      }
    }
  }
  if (changes.empty()) return nullptr;
  return merge_patch(resource, observed.meta, {{"status", changes}}, "status");
}

}  // namespace kube
