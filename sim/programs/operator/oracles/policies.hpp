// The chart's admission policies, as the simulated API server asks them: what Kubernetes' own cleaning and scheduling may not
// delete.
#pragma once

#include "cluster/policies.hpp"
#include "sim/kube/api.hpp"

namespace sim {

/// One of the chart's policies.
Admission admission_of(const op::AdmissionPolicy& policy, const KubeApi& api);

}  // namespace sim
