// Structured logs. The logger is passed in. Put data into fields, and never format data into the message. Never log a secret.
//
//   log.info("lease acquired", {{"holder", id}, {"term_seconds", 15}});
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "core/json.hpp"
#include "core/result.hpp"

namespace core {

enum class Level { kDebug, kInfo, kWarn, kError };

std::string_view to_string(Level level);
/// Parses "debug", "info", "warn" (or "warning") and "error". Error: kInvalid, which names the allowed levels.
Result<Level> parse_level(std::string_view text);

struct Field {
  std::string key;
  Json value;
};
/// Returns the usual field for an error: {"error": {"code", "message", "status"?, "reason"?}}.
Field error_field(const Error& error);

class Logger {
 public:
  virtual ~Logger() = default;
  virtual void log(Level level, std::string_view message, std::vector<Field> fields) = 0;
  void debug(std::string_view message, std::vector<Field> fields = {}) { log(Level::kDebug, message, std::move(fields)); }
  void info(std::string_view message, std::vector<Field> fields = {}) { log(Level::kInfo, message, std::move(fields)); }
  void warn(std::string_view message, std::vector<Field> fields = {}) { log(Level::kWarn, message, std::move(fields)); }
  void error(std::string_view message, std::vector<Field> fields = {}) { log(Level::kError, message, std::move(fields)); }
};

/// Writes each message of level `least` or above as a line of JSON to standard error: ts, level, msg, the fields. Thread-safe.
class SpdLogger final : public Logger {
 public:
  SpdLogger(Level least, const Clock& clock);
  ~SpdLogger() override;
  void log(Level level, std::string_view message, std::vector<Field> fields) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class NullLogger final : public Logger {
 public:
  void log(Level, std::string_view, std::vector<Field>) override {}
};

/// Returns the line that SpdLogger writes, without the newline.
std::string format_log_line(WallTime at, Level level, std::string_view message, const std::vector<Field>& fields);

}  // namespace core
