// slurm-operator-sim: histories from seeds, judged by oracles; each fault alone at each write; and figures of large worlds.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>

#include "core/json.hpp"
#include "sim/bench.hpp"
#include "sim/history.hpp"
#include "sim/world.hpp"

namespace {

struct Flags {
  std::uint64_t seeds = 100;
  std::uint64_t seed_base = 1;
  bool verbose = false;
  bool enumerate = false;
  bool no_enumerate = false;
  std::uint64_t stride = 0;
  std::uint64_t parts = 1, part = 0;
  bool bench = false;
  sim::BenchOptions size;
  int notes = 120;
};

struct Sum {
  std::uint64_t passed = 0, failed = 0;
};

/// What kind of world a seed makes: two operators, an old Slurm and an old API server each now and then.
sim::WorldOptions options_of(std::uint64_t seed, bool print) {
  sim::WorldOptions out;
  out.seed = seed;
  out.operators = seed % 4 == 0 ? 2 : 1;
  if (seed % 3 == 0) out.slurm_release = "24.11.5";
  out.api.watch_list = seed % 5 != 0;
  out.print = print;
  return out;
}

void report(const sim::World& world, const std::vector<std::string>& wrong, const std::string& replay, int notes) {
  (void)world;
  for (const std::string& line : wrong) fmt::print("    {}\n", line);
  fmt::print("    replay: {}\n", replay);
  (void)notes;
}

void print_notes(const std::deque<std::string>& notes, int count) {
  const auto skip = notes.size() > static_cast<std::size_t>(count) ? notes.size() - static_cast<std::size_t>(count) : 0;
  fmt::print("    the last steps:\n");
  for (std::size_t i = skip; i < notes.size(); ++i) fmt::print("      {}\n", notes[i]);
}

void run_seeds(const Flags& flags, Sum& sum) {
  const auto begun = std::chrono::steady_clock::now();
  std::uint64_t steps = 0;
  for (std::uint64_t i = 0; i < flags.seeds; ++i) {
    const std::uint64_t seed = flags.seed_base + i;
    if (seed % flags.parts != flags.part) continue;
    sim::World world(options_of(seed, flags.verbose));
    std::vector<std::string> wrong;
    try {
      sim::History history(world);
      wrong = history.run();
    } catch (const std::exception& error) {
      wrong.push_back(std::string("exception: ") + error.what());
    }
    steps += world.loop().steps();
    ++(wrong.empty() ? sum.passed : sum.failed);
    if (!wrong.empty()) {
      fmt::print("seed {} failed\n", seed);
      report(world, wrong, fmt::format("slurm-operator-sim --seeds 1 --seed-base {} --no-enumerate --verbose", seed),
             flags.notes);
      print_notes(world.oracles().notes(), flags.notes);
    }
    if ((i + 1) % 20 == 0 || i + 1 == flags.seeds) {
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
      fmt::print("{} of {} seeds, {} failed, {} events, {:.0f} s\n", i + 1, flags.seeds, sum.failed, steps, seconds);
      std::fflush(stdout);
    }
  }
}

sim::WorldOptions fixed_options(bool print) {
  sim::WorldOptions out;
  out.seed = 20260102;
  out.print = print;
  return out;
}

void enumerate(const Flags& flags, Sum& sum) {
  sim::World reference(fixed_options(false));
  const sim::FixedResult expected = sim::run_fixed(reference);
  if (!expected.wrong.empty()) {
    fmt::print("the fixed history failed without a fault\n");
    report(reference, expected.wrong, "slurm-operator-sim --enumerate --seeds 0", flags.notes);
    print_notes(reference.oracles().notes(), flags.notes);
    ++sum.failed;
    return;
  }
  // Every fault kind alone at every write, or, for a quick look, at every n-th of these pairs.
  const std::uint64_t stride = flags.stride != 0 ? flags.stride : flags.enumerate ? 1 : 29;
  std::uint64_t pair = 0, tried = 0;
  for (std::uint64_t write = 0; write < expected.writes; ++write) {
    for (const sim::Fault fault : sim::all_faults()) {
      if (pair++ % stride != flags.seed_base % stride) continue;
      if (tried++ % flags.parts != flags.part) continue;
      sim::World world(fixed_options(flags.verbose));
      world.faults().at_write(write, fault);
      sim::FixedResult result;
      try {
        result = sim::run_fixed(world);
      } catch (const std::exception& error) {
        result.wrong.push_back(std::string("exception: ") + error.what());
      }
      if (result.wrong.empty() && result.state != expected.state) {
        for (const std::string& path : core::diff_paths(expected.state, result.state))
          result.wrong.push_back("another end: " + path);
      }
      ++(result.wrong.empty() ? sum.passed : sum.failed);
      if (result.wrong.empty()) continue;
      fmt::print("fault {} at write {} failed\n", sim::to_string(fault), write);
      report(world, result.wrong,
             fmt::format("slurm-operator-sim --enumerate --seeds 0 --stride {} --seed-base {} --verbose", expected.writes * 100,
                         pair - 1),
             flags.notes);
      print_notes(world.oracles().notes(), flags.notes);
    }
  }
  fmt::print("{} of {} faults at {} writes tried, each alone\n", tried, pair, expected.writes);
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
