// slurm-bridge-bench: measures the bridge in a large simulated world.

#include <CLI/CLI.hpp>

#include "sim/programs/bridge/bench.hpp"

int main(int argc, char** argv) {
  sim::BridgeBenchOptions size;
  CLI::App app{"Measures slurm-bridge in a large simulated world"};
  app.add_option("--pods", size.pods, "Pods")->check(CLI::PositiveNumber);
  app.add_option("--nodes", size.nodes, "Kubernetes nodes, at least 4")->check(CLI::Range(4, 16000));
  CLI11_PARSE(app, argc, argv);
  return sim::print_bridge_bench(size) ? 0 : 1;
}
