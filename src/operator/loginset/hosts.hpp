// The names of login pods' hosts. slurmctld tells an srun what becomes of its step at the name that srun's host has for itself,
// and does nothing else while it looks for that name. Of Deployments' pods DNS knows none: an EndpointSlice of ours adds them
// to the headless Service of the workers, in whose domain slurmctld looks.
//
// Folder src/operator/loginset: the controller of LoginSets. Uses operator/common, and no other controller.
#pragma once

#include "core/json.hpp"
#include "operator/loginset/observed.hpp"
#include "plan/plan.hpp"

namespace op::loginset {

/// The EndpointSlice; without endpoints where no pod has a name to be found by.
core::Json build_hosts(const Observed& observed);

/// There is one for as long as there are such pods, and a slurmctld in Kubernetes.
void plan_hosts(const Observed& observed, plan::Plan& plan);

}  // namespace op::loginset
