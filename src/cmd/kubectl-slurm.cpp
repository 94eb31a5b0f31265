// kubectl-slurm, the plugin `kubectl slurm`. It needs only a kubeconfig. For completions, kubectl runs it under another name.

#include <string>
#include <string_view>
#include <vector>

#include "cli/program.hpp"

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  const std::string_view self = argc > 0 ? argv[0] : "";
  if (self.ends_with("kubectl_complete-slurm")) arguments.insert(arguments.begin(), "__complete");
  return cli::run_program(cli::real_outside(KUBECTL_SLURM_VERSION), std::move(arguments));
}
