// Status conditions (metav1.Condition), and the patch that writes a status only when it differs.
#pragma once

#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "core/json.hpp"
#include "kube/object.hpp"
#include "plan/plan.hpp"

namespace kube {

struct Condition {
  std::string type;
  std::string status;  ///< "True", "False" or "Unknown".
  std::string reason;  ///< CamelCase, never empty.
  std::string message;
};

/// Sets a condition in a list. Nothing changes when it says the same already; lastTransitionTime moves only when the status
/// flips. Returns true when the list changed.
bool set_condition(core::Json& conditions, const Condition& condition, std::int64_t observed_generation, core::WallTime now);
/// The condition of a type in an object's status.conditions, or nullptr.
const core::Json* find_condition(const core::Json& object, std::string_view type);
/// True when status.conditions says "True" for the type.
bool condition_true(const core::Json& object, std::string_view type);

/// A merge patch of /status that makes observed.status equal to `desired` for the members that `desired` names (null removes),
/// or nullptr when it is already so. The resourceVersion is a precondition, so that an old status never replaces a newer one.
plan::ActPtr patch_status_if_different(const Resource& resource, const Object& observed, const core::Json& desired);

}  // namespace kube
