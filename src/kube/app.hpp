// The shell of a process that runs controllers: flags, logs, credentials, metrics, health, lease, signals and exit codes. What
// is left to a main is wiring:
//
//   int main(int argc, char** argv) {
//     kube::App app({.name = "slurm-bridge", .version = "1.0", .about = "Runs pods as jobs of Slurm."});
//     bridge::Options options;
//     app.flag("--namespaces", options.namespaces, "Act only on these (comma-separated; default: all)");
//     if (const std::optional<int> code = app.start(argc, argv)) return *code;
//     bridge::Bridge bridge(app.loop(), app.random(), app.log(), app.manager(), options);
//     return app.run();
//   }
//
// Every process has the flags that --help tells first, and by its name the default of its Lease, the prefix of its own metrics,
// its user agent, its field manager and the controller of its events. A flag that is wrong ends it before anything runs, with a
// word about the flag and its value, and, for a level or an address, what is allowed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/log.hpp"
#include "core/random.hpp"
#include "kube/client.hpp"
#include "kube/manager.hpp"
#include "net/asio_loop.hpp"

namespace kube {

struct Program {
  std::string name;  ///< As in "slurm-operator".
  std::string version;
  std::string about;  ///< A line for --help.
};

class App {
 public:
  /// Tunes malloc and limits of the whole process: one App, before any thread.
  explicit App(Program program);
  ~App();
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  /// Flags of the program's own, before start(), which writes them to `value`; until then it has the default.
  void flag(const char* name, bool& value, const char* help);  ///< Takes no value: named, it is true.
  void flag(const char* name, std::string& value, const char* help);
  void flag(const char* name, std::vector<std::string>& value, const char* help);  ///< Comma-separated.

  /// Reads the flags and makes log and client. An exit code: the process has to end with it, and has said why.
  std::optional<int> start(int argc, char** argv);

  /// All from here on after start().
  [[nodiscard]] net::AsioLoop& loop();
  [[nodiscard]] core::Random& random();
  [[nodiscard]] core::Logger& log();
  /// Writes are not fenced until there is a manager.
  [[nodiscard]] Client& client();
  /// Made by the first call; run() starts and stops it. What is registered with it goes before the App does.
  [[nodiscard]] Manager& manager();
  /// What /metrics answers.
  [[nodiscard]] std::string metrics_text();
  /// Logs an error that ends the process, and returns its exit code.
  int fatal(std::string_view what, const core::Error& error);

  /// Serves health and metrics, and runs the manager until SIGTERM or SIGINT and its orderly end. Returns the exit code. A
  /// second signal, a lost lease and an exception end the process at once.
  int run();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kube
