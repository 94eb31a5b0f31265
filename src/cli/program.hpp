// kubectl-slurm as a function of its command line. Parses the command line and runs the command.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.hpp"

namespace cli {

/// The program's access to the outside. Tests pass their own.
struct Outside {
  std::string version;
  OpenSession open;
  std::function<void(std::string_view)> write_out, write_err;
  std::function<bool(const std::string& question)> ask;
  std::function<std::string(const char*)> env;
  bool is_terminal = false;  ///< stdout is a terminal.
};

/// Runs the command in `arguments`, which exclude the program's name. Returns the exit code.
int run_program(const Outside& outside, std::vector<std::string> arguments);

/// Returns access to the real terminal, environment and API server.
Outside real_outside(std::string version);

}  // namespace cli
