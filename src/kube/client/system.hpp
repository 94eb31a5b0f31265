// The system functions that credentials need (environment, files, programs). Tests can replace these functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/result.hpp"

namespace kube {

/// The system functions that credentials need. `read_file` and `run` are called on other threads, except for the first reading.
struct System {
  std::function<std::optional<std::string>(const std::string& name)> env;
  std::function<core::Result<std::string>(const std::string& path)> read_file;
  struct Command {
    std::vector<std::string> argv;
    std::vector<std::pair<std::string, std::string>> env;  ///< Pairs of name and value, added to our own environment.
    core::Duration timeout{30000};
  };
  /// Runs a program and returns its stdout. Error: kUnavailable with the exit status and the end of stderr.
  std::function<core::Result<std::string>(const Command& command)> run;
};
/// Returns the real system: getenv, files, posix_spawn.
System real_system();

}  // namespace kube
