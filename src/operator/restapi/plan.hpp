// Plans what a RestApi needs. Lanes: "guard" (our finalizer), "network" (Service), "pod" (Deployment), "events", "status",
// "tidy" (removal of the finalizer).
#pragma once

#include "core/json.hpp"
#include "operator/restapi/observed.hpp"
#include "plan/plan.hpp"

namespace op::restapi {

plan::Plan plan(const Observed& observed);

// The children, as data to apply.
core::Json build_service(const Observed& observed);
core::Json build_deployment(const Observed& observed);
/// True if the address on which slurmrestd must listen is known. With EnableIPv6, the address depends on the IP families that
/// the API server has given to the Service.
bool knows_address(const Observed& observed);

}  // namespace op::restapi
