// What a RestApi needs done. Lanes: "guard" (our finalizer), "network" (Service), "pod" (Deployment), "events", "status",
// "tidy" (the end).
#pragma once

#include "core/json.hpp"
#include "operator/restapi/observe.hpp"
#include "plan/plan.hpp"

namespace op::restapi {

plan::Plan plan(const Observed& observed);

// The children, as data to apply.
core::Json build_service(const Observed& observed);
core::Json build_deployment(const Observed& observed);

}  // namespace op::restapi
