// The names of login pods' hosts. slurmctld reports the end of a step to the host of srun, by the name that the host has for
// itself, and is blocked while it resolves that name. DNS has no names for the pods of Deployments. So an EndpointSlice of ours
// adds them to the headless Service of the workers, in whose domain slurmctld looks.
//
// Folder src/operator/loginset: the controller of LoginSets. Uses operator/common, and no other controller.
#pragma once

#include "core/json.hpp"
#include "operator/loginset/observed.hpp"
#include "plan/plan.hpp"

namespace op::loginset {

/// Builds the EndpointSlice. It has no endpoints if no pod has a name to resolve.
core::Json build_hosts(const Observed& observed);

/// Applies the EndpointSlice while a pod has a name to resolve and slurmctld runs in Kubernetes. Deletes it otherwise.
void plan_hosts(const Observed& observed, plan::Plan& plan);

}  // namespace op::loginset
