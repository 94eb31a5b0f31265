// What a RestApi needs done. Lanes: "guard" (our finalizer), "network" (Service), "pod" (Deployment), "events", "status",
// "tidy" (the end).
#pragma once

#include "core/json.hpp"
#include "operator/restapi/observed.hpp"
#include "plan/plan.hpp"

namespace op::restapi {

plan::Plan plan(const Observed& observed);

// The children, as data to apply.
core::Json build_service(const Observed& observed);
core::Json build_deployment(const Observed& observed);
/// Whether it is known where slurmrestd is to listen: where IPv6 is enabled, the Service tells, once the API server has made
/// it.
bool knows_address(const Observed& observed);

}  // namespace op::restapi
