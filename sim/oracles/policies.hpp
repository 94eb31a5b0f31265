// The chart's admission policies, as the simulated API server asks them: what Kubernetes' own cleaning and scheduling may not
// delete.
#pragma once

#include "sim/kube/api.hpp"

namespace sim {

/// The policy of the chart: Kubernetes' own cleaning may delete a worker only when the operator released it, or it cannot run
/// jobs.
Admission worker_policy();
/// The chart's policy against preemption of workers that run jobs.
Admission busy_policy();
/// The chart's other policies: what drains need stays, while a Controller that says Drain, or a RestApi, is being deleted.
Admission cluster_policy(const KubeApi& api);

}  // namespace sim
