#include <CLI/CLI.hpp>
#include <map>
#include <utility>

#include "cli/command.hpp"

namespace cli {

Context::Context(Options options, OpenSession open, Style style, std::function<void(std::string_view)> write_out,
                 std::function<void(std::string_view)> write_err, std::function<bool(const std::string&)> ask)
    : options_(std::move(options)),
      open_(std::move(open)),
      style_(style),
      write_out_(std::move(write_out)),
      write_err_(std::move(write_err)),
      ask_(std::move(ask)) {}

core::Result<Api*> Context::api() {
  if (api_ == nullptr) {
    auto session = open_(options_);
    if (!session) return std::unexpected(session.error());
    session_ = std::move(*session);
    api_ = std::make_unique<Api>(*session_);
  }
  return api_.get();
}

std::string Context::ns() const {
  return options_.all_namespaces ? "" : one_ns();
}

std::string Context::one_ns() const {
  if (!options_.ns.empty()) return options_.ns;
  return session_ == nullptr ? "default" : session_->credentials().default_namespace();
}

int Context::fail(const core::Error& error) const {
  if (error.code == core::ErrorCode::kCancelled) return kInterrupted;
  note("error: " + explain(error));
  return kFailed;
}

int Context::refuse(std::string_view why) const {
  note("refused: " + std::string(why));
  return kRefused;
}

void add_timeout(CLI::App& app, double& to, const std::string& help) {
  const std::map<std::string, double> units{{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
  app.add_option("--timeout", to, help + ", for example 90s, 30m, 12h (default: no limit)")
      ->transform(CLI::AsNumberWithUnit(units, CLI::AsNumberWithUnit::CASE_INSENSITIVE, "TIME"))
      ->type_name("TIME");
}

}  // namespace cli
