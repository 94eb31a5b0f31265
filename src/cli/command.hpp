// Defines a command. To add one, write a file with a function that returns the command, and call the function in program.cpp.
//
//   Command hello_command() {
//     return {.path = "hello", .about = "Says hello", .declare = [](CLI::App& app) -> Run {
//       auto name = std::make_shared<std::string>();
//       app.add_option("NAME", *name)->required();
//       return [name](Context& context) -> int {
//         context.out("hello " + *name + "\n");
//         return kDone;
//       };
//     }};
//   }
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/session.hpp"
#include "cli/terminal.hpp"

namespace CLI {
class App;
}

namespace cli {

// Exit codes of the program.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;         ///< An error, printed on stderr.
inline constexpr int kUsage = 2;          ///< The command line is wrong.
inline constexpr int kNotYet = 3;         ///< The desired state is not reached yet, needs a user, or is uncertain.
inline constexpr int kRefused = 4;        ///< Refused because it would do harm. stderr says why, and what to do.
inline constexpr int kInterrupted = 130;  ///< The user interrupted the command.

/// The options that all commands have.
struct Options {
  std::string kubeconfig, context, ns;
  bool all_namespaces = false;
  Format format = Format::kTable;
};

using OpenSession = std::function<core::Result<std::unique_ptr<Session>>(const Options&)>;

/// The environment in which a command runs.
class Context {
 public:
  Context(Options options, OpenSession open, Style style, std::function<void(std::string_view)> write_out,
          std::function<void(std::string_view)> write_err, std::function<bool(const std::string&)> ask);

  /// Returns the access to the API server. Connects on the first call.
  core::Result<Api*> api();
  /// Returns the namespace of -n, or of the kubeconfig's context; "" with -A. Call it after api().
  [[nodiscard]] std::string ns() const;
  /// Returns the namespace of -n, or of the kubeconfig's context, even with -A. For a single object. Call it after api().
  [[nodiscard]] std::string one_ns() const;
  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] const Style& style() const { return style_; }

  void out(std::string_view text) const { write_out_(text); }
  /// Writes progress and other text that is not part of the result.
  void note(std::string_view line) const { write_err_(std::string(line) + "\n"); }
  /// Asks the user. Returns false if the answer is no, or if nobody can answer.
  [[nodiscard]] bool confirm(const std::string& question) const { return ask_(question); }
  /// Prints the error, and returns the exit code.
  int fail(const core::Error& error) const;
  int refuse(std::string_view why) const;

 private:
  Options options_;
  OpenSession open_;
  Style style_;
  std::function<void(std::string_view)> write_out_, write_err_;
  std::function<bool(const std::string&)> ask_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Api> api_;
};

using Run = std::function<int(Context&)>;

/// The kind of names that the shell offers for the arguments of a command.
enum class Names { kNone, kClusters, kNodeSets, kWorkers, kWaitingPods };

struct Command {
  std::string path;   ///< "status", "rollout undo": the command and its parents.
  std::string about;  ///< One line.
  Names names = Names::kNone;
  bool formats = false;         ///< The command has -o.
  bool all_namespaces = false;  ///< The command has -A.
  /// Adds the command's own options and arguments to the parser. The returned function runs the command once they are parsed.
  std::function<Run(CLI::App&)> declare;
};

/// Adds the option --timeout ("90s", "30m", "12h"; 0 means no limit). The parser writes its value to `to`, in seconds.
void add_timeout(CLI::App& app, double& to, const std::string& help);
[[nodiscard]] inline core::Duration seconds(double number) {
  return core::Duration{static_cast<std::int64_t>(number * 1000)};
}

Command status_command();
Command tree_command();
Command why_command();
Command drain_command();
Command resume_command();
std::vector<Command> rollout_commands();
Command release_command();
Command support_bundle_command();

}  // namespace cli
