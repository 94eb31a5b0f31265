// slurm-enlist: lets hosts join a Slurm cluster. This file contains only the wiring of the commands.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/random.hpp"
#include "enlist/agent/join.hpp"
#include "enlist/agent/leave.hpp"
#include "enlist/agent/program.hpp"
#include "enlist/cli/connection.hpp"
#include "enlist/cli/program.hpp"
#include "enlist/coordinator/init.hpp"
#include "enlist/coordinator/process.hpp"
#include "enlist/host/host.hpp"
#include "enlist/juju/program.hpp"

namespace {

using Words = std::vector<std::string>;

void write_to(std::FILE* file, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), file);
  std::fflush(file);
}

/// The exit code for wrong flags. CLI11 would return a different exit code for each kind of mistake.
constexpr int kWrongUsage = 2;

/// Runs a process with the flags in `words`.
int run_shell(std::unique_ptr<run::Shell> shell, std::string command, const Words& words) {
  Words all{std::move(command)};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : all) argv.push_back(word.data());
  argv.push_back(nullptr);
  if (const std::optional<int> code = shell->start(static_cast<int>(all.size()), argv.data()))
    return *code > 1 ? kWrongUsage : *code;
  return shell->run();
}

/// Parses the command line. Returns an exit code if the program must end now.
std::optional<int> parse(CLI::App& app, const Words& words) {
  try {
    app.parse(Words(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kWrongUsage;
  }
  return {};
}

int init(const Words& words) {
  enlist::InitOptions options;
  CLI::App app("Checks the slurm.conf of slurmctld, and changes the settings that joining needs.",
               "slurm-enlist coordinator init");
  app.add_option("--slurm-conf", options.slurm_conf, "The slurm.conf of slurmctld")->capture_default_str();
  app.add_option("--slurmrestd-user", options.slurmrestd_user, "The user that runs slurmrestd: not root, and not SlurmUser")
      ->capture_default_str();
  app.add_option("--max-nodes", options.max_nodes, "How many nodes Slurm must have room for: the smallest MaxNodeCount")
      ->capture_default_str();
  app.add_flag("--yes", options.yes, "Make the changes (default: only show them)");
  if (const std::optional<int> code = parse(app, words)) return *code;
  const auto host = enlist::local_host();
  core::SystemRandom random;
  return enlist::init_coordinator(options, *host, random, [](std::string_view text) { write_to(stdout, text); });
}

/// `token`: the value of --token. take_token() has overwritten the value on the command line.
int join(const Words& words, std::string token) {
  enlist::JoinOptions options;
  enlist::AgentOptions& agent = options.agent;
  int wait = static_cast<int>(options.wait.count());
  CLI::App app("Makes this host a node of a pool, with a token that slurm-enlist token prints.", "slurm-enlist join");
  app.add_option("--token", options.token, "The token");
  app.add_option("--token-file", options.token_file, "A file with the token; -: standard input");
  app.add_flag("--again", options.again, "Join again, although this host has joined before");
  app.add_flag("--no-service", options.no_service,
               "Do not install and start the agent's service, because something else runs the agent");
  app.add_option("--wait", wait, "How many seconds to wait until the node is ready; 0: do not wait")->capture_default_str();
  app.add_option("--agent-unit", agent.agent_unit, "The unit of the agent's service")->capture_default_str();
  app.add_option("--state", agent.state, "The folder of the agent's state and key")->capture_default_str();
  app.add_option("--status-file", agent.status_file, "The file in which the agent reports its phase and errors")
      ->capture_default_str();
  app.add_option("--slurm-folder", agent.slurm_folder, "The folder of Slurm's auth key")->capture_default_str();
  app.add_option("--slurmd", agent.slurmd, "Slurm's daemon")->capture_default_str();
  app.add_option("--check", agent.check, "A script that must succeed before Slurm may start jobs here");
  app.add_option("--gpu-detector", agent.gpu_detector,
                 "A program that prints node parameters for slurmd --conf, such as Gres=gpu:a100:2");
  app.add_option("--supervisor", agent.supervisor, "systemd, child (of the agent) or auto")->capture_default_str();
  app.add_option("--slurmd-unit", agent.slurmd_unit, "The unit of slurmd")->capture_default_str();
  app.add_option("--slurmd-defaults", agent.slurmd_defaults, "The file with the arguments of slurmd")->capture_default_str();
  app.add_option("--slurmd-log", agent.slurmd_log, "The log of a slurmd that is a child")->capture_default_str();
  if (const std::optional<int> code = parse(app, words)) return *code;
  if (!token.empty()) options.token = std::move(token);
  options.wait = std::chrono::seconds{wait};
  return enlist::join(options);
}

int leave(const Words& words) {
  enlist::LeaveOptions options;
  enlist::AgentOptions& agent = options.agent;
  CLI::App app("Lets this host leave the cluster, when its jobs have ended.", "slurm-enlist leave");
  int wait = -1;
  app.add_option("--wait", wait, "How many seconds to wait until the host has left; 0: do not wait (default: no limit)");
  app.add_option("--state", agent.state, "The folder of the agent's state and key")->capture_default_str();
  app.add_option("--status-file", agent.status_file, "The file in which the agent reports its phase and errors")
      ->capture_default_str();
  if (const std::optional<int> code = parse(app, words)) return *code;
  if (wait >= 0) options.wait = std::chrono::seconds{wait};
  return enlist::with_parts([&](const enlist::JoinParts& parts) { return enlist::leave(options, parts); });
}

int charm(const Words& words) {
  std::string name;
  CLI::App app("Runs the hook of Juju that the environment names. The charms' dispatch calls it.", "slurm-enlist charm");
  app.add_option("CHARM", name, "slurmd or slurmctld")->required();
  if (const std::optional<int> code = parse(app, words)) return *code;
  return enlist::juju::run_charm(name);
}

}  // namespace

int main(int argc, char** argv) {
  // Overwrites the token on the command line before any other work, so that ps(1) shows the token only briefly.
  const std::string token = enlist::take_token(argc, argv);
  const enlist::cli::Outside outside{
      .version = SLURM_ENLIST_VERSION,
      .root = geteuid() == 0,
      .write_out = [](std::string_view text) { write_to(stdout, text); },
      .write_err = [](std::string_view text) { write_to(stderr, text); },
      .ask = enlist::cli::ask_coordinator,
      .coordinator =
          [](const Words& words) {
            const auto host = enlist::local_host();
            return run_shell(enlist::make_coordinator(SLURM_ENLIST_VERSION, *host), "slurm-enlist coordinator run", words);
          },
      .init = init,
      .agent =
          [](const Words& words) {
            return run_shell(enlist::make_agent({.version = SLURM_ENLIST_VERSION}), "slurm-enlist agent", words);
          },
      .join = [&token](const Words& words) { return join(words, token); },
      .leave = leave,
      .charm = charm,
      .now = [] { return std::chrono::steady_clock::now().time_since_epoch(); },
      .sleep = [](std::chrono::milliseconds time) { std::this_thread::sleep_for(time); },
  };
  return enlist::cli::run_program(outside, Words(argv + (argc > 0 ? 1 : 0), argv + argc));
}
