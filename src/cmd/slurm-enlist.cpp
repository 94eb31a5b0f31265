// slurm-enlist: lets hosts join a Slurm cluster. Only the wiring of its commands is here.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/random.hpp"
#include "enlist/cli/connection.hpp"
#include "enlist/cli/program.hpp"
#include "enlist/coordinator/init.hpp"
#include "enlist/coordinator/process.hpp"
#include "enlist/host/host.hpp"

namespace {

using Words = std::vector<std::string>;

void write_to(std::FILE* file, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), file);
  std::fflush(file);
}

/// The exit code of CLI11 for wrong flags is another for each mistake.
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

int init(const Words& words) {
  enlist::InitOptions options;
  CLI::App app("Checks slurm.conf beside slurmctld for what joining needs, and sets it.", "slurm-enlist coordinator init");
  app.add_option("--slurm-conf", options.slurm_conf, "The slurm.conf of slurmctld")->capture_default_str();
  app.add_option("--slurmrestd-user", options.slurmrestd_user, "The user as whom slurmrestd runs: not root, and not SlurmUser")
      ->capture_default_str();
  app.add_option("--max-nodes", options.max_nodes, "MaxNodeCount, if slurm.conf has none")->capture_default_str();
  app.add_flag("--yes", options.yes, "Write the changes; without it they are only shown");
  try {
    app.parse(Words(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kWrongUsage;
  }
  const auto host = enlist::local_host();
  core::SystemRandom random;
  return enlist::init_coordinator(options, *host, random, [](std::string_view text) { write_to(stdout, text); });
}

int missing(const Words&) {
  write_to(stderr, "slurm-enlist: this build has no agent\n");
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const enlist::cli::Outside outside{
      .version = SLURM_ENLIST_VERSION,
      .write_out = [](std::string_view text) { write_to(stdout, text); },
      .write_err = [](std::string_view text) { write_to(stderr, text); },
      .ask = enlist::cli::ask_coordinator,
      .coordinator =
          [](const Words& words) {
            return run_shell(enlist::make_coordinator(SLURM_ENLIST_VERSION), "slurm-enlist coordinator run", words);
          },
      .init = init,
      .agent = missing,
      .join = missing,
  };
  return enlist::cli::run_program(outside, Words(argv + (argc > 0 ? 1 : 0), argv + argc));
}
