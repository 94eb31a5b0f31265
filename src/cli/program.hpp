// kubectl-slurm as a function of its command line: reads it, and runs the command that it names.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.hpp"

namespace cli {

/// What the program touches of the outside; tests bring their own.
struct Outside {
  std::string version;
  OpenSession open;
  std::function<void(std::string_view)> write_out, write_err;
  std::function<bool(const std::string& question)> ask;
  std::function<std::string(const char*)> env;
  bool is_terminal = false;  ///< Of stdout.
};

/// `arguments`: without the program's name. Returns what it ends with.
int run_program(const Outside& outside, std::vector<std::string> arguments);

/// The real one.
Outside real_outside(std::string version);

}  // namespace cli
