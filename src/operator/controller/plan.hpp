// Plans what a Controller needs: keys, configuration, Services, the StatefulSet of slurmctld, and the order in which they end.
//
// Lanes: "guard" (our finalizer), "keys" (generated Secrets), "network" (Services), "pdb" (the workers' PodDisruptionBudget),
// "pod" (ConfigMap, then StatefulSet), "load" (loading a changed configuration into slurmctld, see rollout.hpp), "events",
// "status", "workers" and "tidy" (the end).
#pragma once

#include "operator/controller/observed.hpp"
#include "plan/plan.hpp"

namespace op::controller {

plan::Plan plan(const Observed& observed);

}  // namespace op::controller
