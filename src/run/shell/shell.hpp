// The shell of a process that runs controllers: flags, logs, metrics, health, signals and exit codes. A program derives from
// it, and says what begins, what ends, and when it is ready. (With an API server: kube/app/app.hpp.)
//
// Every process has the flags that --help tells first, and by its name the prefix of its own metrics. A flag that is wrong ends
// it before anything runs, with a word about the flag and its value, and, for a level or an address, what is allowed.
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
  std::string name;  ///< As in "slurm-operator".
  std::string version;
  std::string about;  ///< A line for --help.
};

class Shell {
 public:
  /// Tunes malloc and limits of the whole process: one Shell, before any thread.
  Shell(Program program, std::unique_ptr<Metrics> metrics);
  virtual ~Shell();
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

  /// Flags of the program's own, before start(), which writes them to `value`; until then it has the default.
  void flag(const char* name, bool& value, const char* help);  ///< Takes no value: named, it is true.
  void flag(const char* name, std::string& value, const char* help);
  void flag(const char* name, std::vector<std::string>& value, const char* help);  ///< Comma-separated.

  /// Reads the flags, makes the log, and prepares. An exit code: the process has to end with it, and has said why.
  std::optional<int> start(int argc, char** argv);

  [[nodiscard]] net::AsioLoop& loop() { return loop_; }
  [[nodiscard]] core::Random& random() { return random_; }
  [[nodiscard]] core::Logger& log() { return *log_; }  ///< After start().
  /// What /metrics answers.
  [[nodiscard]] std::string metrics_text();
  /// Logs an error that ends the process, and returns its exit code.
  int fatal(std::string_view what, const core::Error& error);

  /// Serves health and metrics, begins, and runs until SIGTERM or SIGINT and the orderly end. Returns the exit code. A second
  /// signal and an exception end the process at once.
  int run();

 protected:
  [[nodiscard]] CLI::App& cli() { return *cli_; }
  [[nodiscard]] Metrics& metrics() { return *metrics_; }
  const Program program_;

 private:
  /// The flags are read. An exit code as of start().
  virtual std::optional<int> prepare() { return {}; }
  virtual HealthChecks health() { return {}; }
  /// Fields of the line that says that it starts.
  virtual std::vector<core::Field> connected_to() { return {}; }
  virtual void begin() = 0;
  virtual void end(std::function<void()> done) = 0;
  /// Brings the gauges of the metrics up to date; before they are written out.
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
