// Measures the bridge in a large world: the simulated Kubernetes and Slurm, the real bridge, virtual time.
//
//   sim::print_bridge_bench({.pods = 5000, .nodes = 1000});
//
// The figures exclude the costs of the simulated parts. The simulated slurmrestd lists jobs as slowly as a real slurmrestd,
// because the bridge polls less often when polls take long. The simulated one answers all other requests within milliseconds.
//
// Folder sim/programs/bridge: slurm-bridge in the simulator: its process, what its users do, and its oracle. Uses sim/histories
// and bridge.
#pragma once

namespace sim {

struct BridgeBenchOptions {
  int pods = 5000;   ///< The number of pods. A fifth is created last, when the nodes are full.
  int nodes = 1000;  ///< The number of nodes. Each node has room for four pods.
};

/// Registers the nodes, and creates the pods. Prints the cost of the passes, the requests to slurmrestd at rest (first without
/// pods that wait, then with them), and the cost and the memory of a bridge that starts anew. Returns false if pods were not
/// submitted or not bound, or if the oracle found a violation.
bool print_bridge_bench(const BridgeBenchOptions& options);

}  // namespace sim
