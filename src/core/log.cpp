#include "core/log.hpp"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "core/hash.hpp"

namespace core {

std::string_view to_string(Level level) {
  switch (level) {
    case Level::kDebug:
      return "debug";
    case Level::kInfo:
      return "info";
    case Level::kWarn:
      return "warn";
    case Level::kError:
      return "error";
  }
  return "error";
}

Result<Level> parse_level(std::string_view text) {
  if (text == "debug") return Level::kDebug;
  if (text == "info") return Level::kInfo;
  if (text == "warn" || text == "warning") return Level::kWarn;
  if (text == "error") return Level::kError;
  return fail(ErrorCode::kInvalid, fmt::format("log level \"{}\", must be debug, info, warn or error", text));
}

Field error_field(const Error& error) {
  Json value{{"code", to_string(error.code)}, {"message", error.message}};
  if (error.http_status != 0) value["status"] = error.http_status;
  if (!error.reason.empty()) value["reason"] = error.reason;
  return {"error", std::move(value)};
}

std::string format_log_line(WallTime at, Level level, std::string_view message, const std::vector<Field>& fields) {
  // Written by hand, because a JSON object would sort ts, level and msg among the fields.
  std::string line = fmt::format(R"({{"ts":"{}","level":"{}","msg":{})", format_rfc3339_micro(at), to_string(level),
                                 canonical(Json(std::string(message))));
  for (const Field& field : fields) line += fmt::format(",{}:{}", canonical(Json(field.key)), canonical(field.value));
  line += '}';
  return line;
}

struct SpdLogger::Impl {
  Level least;
  const Clock& clock;
  spdlog::logger logger;
};

SpdLogger::SpdLogger(Level least, const Clock& clock)
    : impl_(new Impl{least, clock, spdlog::logger("", std::make_shared<spdlog::sinks::stderr_sink_mt>())}) {
  impl_->logger.set_pattern("%v");
  impl_->logger.set_level(spdlog::level::trace);  // log() itself compares with `least`
  impl_->logger.flush_on(spdlog::level::trace);
}

SpdLogger::~SpdLogger() = default;

void SpdLogger::log(Level level, std::string_view message, std::vector<Field> fields) {
  if (level < impl_->least) return;
  impl_->logger.info("{}", format_log_line(impl_->clock.wall(), level, message, fields));
}

}  // namespace core
