// slurm-enlist as a function of its command line: parses it, and runs the command.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"
#include "core/result.hpp"

namespace enlist::cli {

/// Where the coordinator is, and where the keys for it are.
struct Connection {
  std::string address = "127.0.0.1:6830";
  std::string state = "/var/lib/slurm-enlist";  ///< The folder with admin.crt, admin.key and coordinator.crt.
};

/// The program's access to the outside. Tests pass their own.
struct Outside {
  std::string version;
  bool root = false;  ///< The effective user is root.
  std::function<void(std::string_view)> write_out, write_err;
  /// Asks the coordinator as an administrator. `body` null: GET, else POST. Returns the body of the answer. An answer with an
  /// error is an error with its text.
  std::function<core::Result<core::Json>(const Connection& to, const std::string& path, const core::Json& body)> ask;
  /// Programs with flags of their own: they get the words behind the command, and return the exit code. `init`: "coordinator
  /// init".
  using Program = std::function<int(const std::vector<std::string>& words)>;
  Program coordinator, init, agent, join, leave, charm;
  std::function<std::chrono::nanoseconds()> now;  ///< The time of a clock that does not jump.
  std::function<void(std::chrono::milliseconds)> sleep;
};

/// Runs the command in `words`, which exclude the program's name. Returns the exit code: 0 (done), 1 (refused or failed), 2
/// (wrong usage).
int run_program(const Outside& outside, const std::vector<std::string>& words);

}  // namespace enlist::cli
