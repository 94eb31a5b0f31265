// Plans for one pod and the Slurm jobs that name it:
//
//   the pod has the gate           a job is submitted; when it runs, the pod is pinned to its node and the gate is removed
//   the pod is placed              its job is watched; a pod that Kubernetes does not bind in time ends as Failed
//   its job has ended              a bound pod is evicted, and deleted after a limit; an unbound pod ends as Failed
//   the pod has ended or is gone   its job is cancelled
//
// While Slurm does not answer, jobs stay as they are, and a pod ends only because Kubernetes did not bind it in time.
#pragma once

#include "bridge/jobs/observed.hpp"
#include "plan/plan.hpp"

namespace bridge::jobs {

plan::Plan plan(const Observed& observed);

}  // namespace bridge::jobs
