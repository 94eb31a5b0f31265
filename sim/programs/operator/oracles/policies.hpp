// The chart's admission policies in the simulated API server. The policies refuse some deletions by Kubernetes' own controllers
// and by its scheduler.
#pragma once

#include "operator/common/policies.hpp"
#include "sim/kube/api.hpp"

namespace sim {

/// Returns the admission rule of one of the chart's policies.
Admission admission_of(const op::AdmissionPolicy& policy, const KubeApi& api);

}  // namespace sim
