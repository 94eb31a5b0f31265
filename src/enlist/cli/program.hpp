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

/// The address of the coordinator, and the folder of the keys for it.
struct Connection {
  std::string address = "127.0.0.1:6830";
  std::string state = "/var/lib/slurm-enlist";  ///< The folder of admin.crt, admin.key and coordinator.crt.
};

/// The program's access to the outside. Tests pass their own.
struct Outside {
  std::string version;
  bool root = false;  ///< The effective user is root.
  std::function<void(std::string_view)> write_out, write_err;
  /// Sends a request to the coordinator as an administrator: a GET if `body` is null, otherwise a POST. Returns the body of the
  /// answer. If the coordinator answers with an error, returns an error with the same text.
  std::function<core::Result<core::Json>(const Connection& to, const std::string& path, const core::Json& body)> ask;
  /// A command that parses its own flags. It gets the arguments after its name, and returns the exit code. `init`: "coordinator
  /// init". `coordinator`: "coordinator run".
  using Program = std::function<int(const std::vector<std::string>& words)>;
  Program coordinator, init, agent, join, leave, charm;
  std::function<std::chrono::nanoseconds()> now;  ///< The time of a clock that does not jump.
  std::function<void(std::chrono::milliseconds)> sleep;
};

/// Runs the command line `words`, without the program's name. Returns the exit code: 0 (done), 1 (refused or failed), 2 (wrong
/// usage).
int run_program(const Outside& outside, const std::vector<std::string>& words);

}  // namespace enlist::cli
