// The shell of a process that runs controllers: flags, logs, metrics, health, signals and exit codes. A program derives from
// Shell, and defines how it begins and ends, and when it is ready. For programs with an API server, see kube/app/app.hpp.
//
// Every process has the flags that --help lists first. An invalid flag ends the process before anything else runs. The message
// names the flag, its value and, for a level or an address, the allowed values.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/log.hpp"
#include "core/random.hpp"
#include "net/asio_loop.hpp"
#include "net/http_server.hpp"
#include "run/shell/health.hpp"
#include "run/shell/metrics.hpp"

namespace CLI {
class App;
}

namespace run {

struct Program {
  std::string name;  ///< "slurm-operator", for example.
  std::string version;
  std::string about;  ///< One line for --help.
};

class Shell {
 public:
  /// Configures malloc and the limits of the whole process. Make only one Shell, before any thread starts.
  Shell(Program program, std::unique_ptr<Metrics> metrics);
  virtual ~Shell();
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

  /// Adds a flag. Call it before start(), which writes the flag's value to `value`. Until then, `value` holds the default.
  void flag(const char* name, bool& value, const char* help);  ///< Takes no value: its presence means true.
  void flag(const char* name, std::string& value, const char* help);
  void flag(const char* name, std::vector<std::string>& value, const char* help);  ///< Comma-separated.

  /// Parses the flags, creates the log, and calls prepare(). If the process must end, prints the error and returns the exit
  /// code. Otherwise returns nullopt.
  std::optional<int> start(int argc, char** argv);

  [[nodiscard]] net::AsioLoop& loop() { return loop_; }
  [[nodiscard]] core::Random& random() { return random_; }
  [[nodiscard]] core::Logger& log() { return *log_; }  ///< Call it only after start().
  /// Returns the text of /metrics.
  [[nodiscard]] std::string metrics_text();
  /// Logs an error that ends the process, and returns the exit code.
  int fatal(std::string_view what, const core::Error& error);

  /// Serves health and metrics, calls begin(), and runs the loop until SIGTERM or SIGINT. Then calls end(). Returns the exit
  /// code. A second signal or an exception ends the process at once.
  int run();

 protected:
  [[nodiscard]] CLI::App& cli() { return *cli_; }
  [[nodiscard]] Metrics& metrics() { return *metrics_; }
  const Program program_;

 private:
  /// Called after the flags are parsed. Returns an exit code if the process must end; else nullopt.
  virtual std::optional<int> prepare() { return {}; }
  virtual HealthChecks health() { return {}; }
  /// Returns additional fields of the log line "starting".
  virtual std::vector<core::Field> connected_to() { return {}; }
  virtual void begin() = 0;
  virtual void end(std::function<void()> done) = 0;
  /// Updates the gauges of the metrics, before they are exported.
  virtual void collect() {}

  using Server = core::Result<std::unique_ptr<net::HttpServer>>;
  [[nodiscard]] Server serve(std::string_view flag, const std::string& address, net::HttpServer::Handler handler);
  [[nodiscard]] net::HttpServer::Handler answer_metrics();
  void on_signal(int signal);

  std::string health_address_ = ":8081";
  std::string metrics_address_ = ":8080";
  std::string metrics_token_file_;
  std::string log_level_ = "info";
  std::unique_ptr<CLI::App> cli_;
  net::AsioLoop loop_{2};
  std::optional<core::SpdLogger> log_;
  core::SystemRandom random_;
  std::unique_ptr<Metrics> metrics_;
  bool stopping_ = false;
};

}  // namespace run
