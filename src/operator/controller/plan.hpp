// Plans what a Controller needs (keys, configuration, Services, slurmctld's StatefulSet), and the order of its deletion.
//
// Lanes: "guard" (our finalizer), "keys" (generated Secrets, keyring), "witnesses" (see rotation.hpp), "network" (Services),
// "pdb" (PodDisruptionBudgets of workers and slurmctlds), "records" (records in Slurm that NodeSets left behind), "pod"
// (ConfigMaps, then StatefulSets), "load" (loading a changed configuration into slurmctld, see rollout.hpp), "release"
// (slurmdbd's release for a slurmctld that waits to start), "mend" (see usage_missing.hpp), "metrics" (ServiceMonitor),
// "events", "status", "workers" (workers whose NodeSet is gone), "tidy" (deletion of generated keys, removal of the finalizer).
#pragma once

#include "operator/controller/observed.hpp"
#include "plan/plan.hpp"

namespace op::controller {

plan::Plan plan(const Observed& observed);

}  // namespace op::controller
