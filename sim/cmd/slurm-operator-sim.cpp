// slurm-operator-sim: runs histories from seeds, which oracles judge. Also tries each fault alone at each write, and measures
// large worlds.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "sim/histories/history.hpp"
#include "sim/histories/trials.hpp"
#include "sim/programs/operator/bench.hpp"
#include "sim/programs/operator/fixed_history.hpp"
#include "sim/programs/operator/world.hpp"

namespace {

struct Flags {
  std::uint64_t seeds = 100;
  std::uint64_t seed_base = 1;
  bool verbose = false;
  bool enumerate = false;
  bool no_enumerate = false;
  std::uint64_t stride = 0;
  std::string fault;
  std::optional<std::uint64_t> at_write;
  std::uint64_t parts = 1, part = 0;
  bool bench = false;
  sim::BenchOptions size;
  int notes = 120;
};

struct Sum {
  std::uint64_t passed = 0, failed = 0;
};

/// Returns the world of a seed. Some seeds have two operators, an old Slurm, an old API server, or several namespaces.
sim::WorldOptions options_of(std::uint64_t seed, bool print) {
  sim::WorldOptions out;
  out.seed = seed;
  if (seed % 3 == 0) out.slurm_release = "24.11.5";
  out.api.watch_list = seed % 5 != 0;
  out.api.watch_progress = seed % 7 != 0;
  out.print = print;
  return out;
}

sim::OperatorOptions operators_of(std::uint64_t seed) {
  sim::OperatorOptions out;
  out.processes = seed % 4 == 0 ? 2 : 1;
  if (seed % 6 == 1) out.namespaces = {sim::World::kNamespace, "a third one"};
  return out;
}

void report(const std::vector<std::string>& wrong, const std::string& replay) {
  for (const std::string& line : wrong) fmt::print("    {}\n", line);
  fmt::print("    replay: {}\n", replay);
}

void print_notes(const std::deque<std::string>& notes, int count) {
  const auto skip = notes.size() > static_cast<std::size_t>(count) ? notes.size() - static_cast<std::size_t>(count) : 0;
  fmt::print("    the last steps:\n");
  for (std::size_t i = skip; i < notes.size(); ++i) fmt::print("      {}\n", notes[i]);
}

void run_seeds(const Flags& flags, Sum& sum) {
  const auto begun = std::chrono::steady_clock::now();
  std::uint64_t steps = 0;
  std::map<sim::Blame, int> losses;
  std::size_t most_to_kube = 0, most_to_slurm = 0;
  std::map<std::string, core::Duration> longest;
  for (std::uint64_t i = 0; i < flags.seeds; ++i) {
    const std::uint64_t seed = flags.seed_base + i;
    if (seed % flags.parts != flags.part) continue;
    sim::OperatorWorld world(options_of(seed, flags.verbose), operators_of(seed));
    std::vector<std::string> wrong;
    try {
      sim::History history(world);
      wrong = history.run();
    } catch (const std::exception& error) {
      wrong.push_back(std::string("exception: ") + error.what());
    }
    steps += world.loop().steps();
    for (const auto& [blame, count] : world.judges().jobs().losses()) losses[blame] += count;
    const sim::ServiceOracle& service = world.judges().service();
    most_to_kube = std::max(most_to_kube, service.most(false));
    most_to_slurm = std::max(most_to_slurm, service.most(true));
    for (const auto& [what, length] : service.longest()) longest[what] = std::max(longest[what], length);
    ++(wrong.empty() ? sum.passed : sum.failed);
    if (!wrong.empty()) {
      fmt::print("seed {} failed\n", seed);
      report(wrong, fmt::format("slurm-operator-sim --seeds 1 --seed-base {} --no-enumerate --verbose", seed));
      print_notes(world.oracles().notes(), flags.notes);
    }
    if ((i + 1) % 20 == 0 || i + 1 == flags.seeds) {
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
      fmt::print("{} of {} seeds, {} failed, {} events, {:.0f} s\n", i + 1, flags.seeds, sum.failed, steps, seconds);
      std::fflush(stdout);
    }
  }
  fmt::print("most requests in a minute: {} to the API server, {} to Slurm\n", most_to_kube, most_to_slurm);
  for (const auto& [what, length] : longest) fmt::print("longest: {} for {} ms\n", what, length.count());
  for (const auto& [blame, count] : losses) {
    const char* judged = sim::is_excused(blame) ? ", excused" : "";
    fmt::print("jobs lost: {} ({}{})\n", count, sim::to_string(blame), judged);
  }
}

std::vector<std::string> fault_names() {
  std::vector<std::string> out;
  for (const sim::Trial& trial : sim::all_trials()) out.push_back(trial.name);
  return out;
}

/// Runs the fixed history with the fault of `trial` from this write on; without faults if `trial` is null.
sim::FixedResult run_trial(const Flags& flags, int processes, const sim::Trial* trial, std::uint64_t write,
                           const std::string& replay, const core::Json* expected) {
  sim::WorldOptions options;
  options.seed = 20260102;
  options.print = flags.verbose;
  sim::OperatorWorld world(options, {.processes = processes});
  if (trial != nullptr) trial->arm(world, write);
  sim::FixedResult result;
  try {
    result = sim::run_fixed(world);
  } catch (const std::exception& error) {
    result.wrong.push_back(std::string("exception: ") + error.what());
  }
  if (result.wrong.empty() && expected != nullptr) sim::differences(*expected, result.state, "", result.wrong);
  if (!result.wrong.empty()) {
    fmt::print("{} failed\n", trial == nullptr ? "the fixed history without a fault"
                                               : fmt::format("fault \"{}\" at write {}", trial->name, write));
    report(result.wrong, replay);
    print_notes(world.oracles().notes(), flags.notes);
  }
  return result;
}

void enumerate(const Flags& flags, Sum& sum) {
  const auto begun = std::chrono::steady_clock::now();
  const std::string replay = "slurm-operator-sim --seeds 0 --enumerate --verbose";
  // The final state does not depend on the number of operators.
  const sim::FixedResult alone = run_trial(flags, 1, nullptr, 0, replay, nullptr);
  const sim::FixedResult two = run_trial(flags, 2, nullptr, 0, replay, &alone.state);
  if (!alone.wrong.empty() || !two.wrong.empty()) {
    ++sum.failed;
    return;
  }
  // Tries every fault alone at every write. A quick run tries only every n-th of these pairs of fault and write.
  const std::uint64_t stride = flags.stride != 0 ? flags.stride : flags.enumerate ? 1 : 67;
  std::uint64_t pairs = 0, tried = 0;
  for (const sim::Trial& trial : sim::all_trials()) {
    const std::uint64_t writes = trial.processes == 1 ? alone.writes : two.writes;
    for (std::uint64_t write = 0; write < writes; ++write) {
      const bool named = (flags.fault.empty() || flags.fault == trial.name) && (!flags.at_write || *flags.at_write == write);
      if (!named || pairs++ % stride != flags.seed_base % stride || tried++ % flags.parts != flags.part) continue;
      const sim::FixedResult result =
          run_trial(flags, trial.processes, &trial, write,
                    fmt::format("{} --fault \"{}\" --at-write {}", replay, trial.name, write), &alone.state);
      ++(result.wrong.empty() ? sum.passed : sum.failed);
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  fmt::print("{} of {} pairs of a fault and a write tried, part {} of {}, {:.0f} s\n", tried, pairs, flags.part + 1,
             flags.parts, seconds);
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app{"Runs the operator in simulated worlds"};
  app.add_option("--seeds", flags.seeds, "How many random histories");
  app.add_option("--seed-base", flags.seed_base, "The first seed");
  app.add_flag("--verbose", flags.verbose, "Print the operators' logs");
  app.add_flag("--enumerate", flags.enumerate, "Every fault at every write of the fixed history, not only a part of them");
  app.add_flag("--no-enumerate", flags.no_enumerate, "No fixed history");
  app.add_option("--stride", flags.stride, "Of the pairs of write and fault, try every n-th");
  app.add_option("--fault", flags.fault, "Only this fault at writes of the fixed history")->check(CLI::IsMember(fault_names()));
  app.add_option("--at-write", flags.at_write, "Only faults at this write of the fixed history");
  app.add_option("--parts", flags.parts, "Of the seeds and faults, do every n-th: for n processes at once")
      ->check(CLI::PositiveNumber);
  app.add_option("--part", flags.part, "Which of these, from 0");
  app.add_option("--notes", flags.notes, "How many of the last steps of a failing history are printed");
  app.add_flag("--bench", flags.bench, "No histories: what the operator costs in one large world");
  app.add_option("--nodesets", flags.size.nodesets, "Of the large world")->check(CLI::PositiveNumber);
  app.add_option("--workers", flags.size.workers, "Of each NodeSet of the large world")->check(CLI::PositiveNumber);
  app.add_option("--kube-nodes", flags.size.kube_nodes, "Kubernetes nodes of the large world")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  if (flags.bench) return sim::print_bench(flags.size) ? 0 : 1;
  Sum sum;
  run_seeds(flags, sum);
  if (!flags.no_enumerate) enumerate(flags, sum);
  fmt::print("{} passed, {} failed\n", sum.passed, sum.failed);
  return sum.failed == 0 ? 0 : 1;
}
