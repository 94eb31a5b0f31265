#include "sim/oracles/tap.hpp"

#include <cstdio>

namespace sim {

void OracleLogger::log(core::Level level, std::string_view message, std::vector<core::Field> fields) {
  const std::string line = core::format_log_line(clock_.wall(), level, message, fields);
  oracles_.log_line(line);
  if (level == core::Level::kDebug) return;
  oracles_.note(who_ + " " + line);
  if (print_) std::printf("%s %s\n", who_.c_str(), line.c_str());
  // A bug that the engine reports is always a violation.
  if (message.find("this is a bug") != std::string_view::npos) oracles_.violation(std::string(message));
}

}  // namespace sim
