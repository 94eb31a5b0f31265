// Plans for one node of Slurm, and the Kubernetes node of that name:
//
//   a Kubernetes node is labelled as external     it is registered in Slurm, once it is ready
//   its partitions change                         the features of the Slurm node follow
//   its resources change                          the Slurm node is drained, deleted, and registered again
//   Slurm waits for an answer of the Slurm node   as for resources, but drained only when no job holds the node
//   its label or the Kubernetes node is gone      the Slurm node is drained, and deleted when no job holds it
//   Slurm has the node                            the Kubernetes node has the taint, and a condition with its state
//   the Kubernetes node takes no pods             the Slurm node is drained; the drain is removed when the cause is gone
//
// Only a Slurm node with the mark of this installation is changed or deleted, and only a drain of the bridge is undone. While
// Slurm does not answer, everything stays as it is.
#pragma once

#include "bridge/nodes/observed.hpp"
#include "plan/plan.hpp"

namespace bridge::nodes {

plan::Plan plan(const Observed& observed);

}  // namespace bridge::nodes
