// Publishes the host names of login pods in DNS. When a job step ends, slurmctld connects to the host of srun by host name.
// While slurmctld resolves that name, it is blocked. DNS has no names for pods of Deployments. So the operator makes an
// EndpointSlice that adds the login pods to the headless Service of the workers. slurmctld resolves host names in the domain of
// this Service.
//
// Folder src/operator/loginset: the controller of LoginSets. Uses operator/common, and no other controller.
#pragma once

#include "core/json.hpp"
#include "operator/loginset/observed.hpp"
#include "plan/plan.hpp"

namespace op::loginset {

/// Builds the EndpointSlice. It has no endpoints if no login pod has a host name to publish.
core::Json build_hosts(const Observed& observed);

/// Applies the EndpointSlice if slurmctld runs in Kubernetes and a login pod has a host name to publish. Otherwise deletes the
/// EndpointSlice.
void plan_hosts(const Observed& observed, plan::Plan& plan);

}  // namespace op::loginset
