// Measures the operator in a large world: the simulated Kubernetes and Slurm, the real operator, virtual time.
//
//   sim::print_bench({.nodesets = 100, .workers = 100});
//
// The figures exclude the costs of the simulated parts (API server, kubelets, slurmrestd). The simulated slurmrestd answers
// within milliseconds, so the operator polls it more often than a real slurmrestd with thousands of nodes.
//
// Folder sim/programs/operator: the operator as a program of a world. Uses sim/histories and operator.
#pragma once

namespace sim {

struct BenchOptions {
  int nodesets = 100;
  int workers = 100;  ///< Workers of each NodeSet.
  int kube_nodes = 100;
};

/// Creates the cluster. Prints the cost until all workers are ready, then the cost of a pass and of a start of the operator,
/// its memory, and the time to drain and remove 1,000 workers. Returns false if the cluster did not become ready.
bool print_bench(const BenchOptions& options);

}  // namespace sim
