// What the operator costs in a large world: the simulated Kubernetes and Slurm, the real operator, virtual time.
//
//   sim::print_bench({.nodesets = 100, .workers = 100});
//
// What the machine's own parts cost (API server, kubelets, slurmrestd) is in no figure of the operator's. slurmrestd answers
// within milliseconds here whatever its size, so it is polled oftener than a real one of thousands of nodes.
#pragma once

namespace sim {

struct BenchOptions {
  int nodesets = 100;
  int workers = 100;  ///< Of each NodeSet.
  int kube_nodes = 100;
};

/// Founds the cluster, and prints what it took until all workers are ready, what a pass and a start of the operator take then,
/// what it holds in memory, and how long it takes to drain and remove 1,000 of the workers. False when it did not become ready.
bool print_bench(const BenchOptions& options);

}  // namespace sim
