// Plans for one group of pods and its jobs:
//
//   enough pods have the gate      one job is submitted for all; when it runs, each pod is pinned to a node of its own
//   a pod of the running job ends  the next pod of the group that has the gate gets this node
//   a pod cannot be bound in time  the pod ends as Failed, and the job ends
//   the job has ended              all pods of the job end
//   all pods of the job have ended the job is cancelled
//
// Once one pod of a job is placed, the other pods of the job are placed too. If the bridge crashes in between, it continues
// after its restart.
#pragma once

#include "bridge/gangs/observed.hpp"
#include "plan/plan.hpp"

namespace bridge::gangs {

plan::Plan plan(const Observed& observed);

}  // namespace bridge::gangs
