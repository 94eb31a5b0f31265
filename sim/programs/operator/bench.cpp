#include "sim/programs/operator/bench.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <vector>

#include "api/well_known.hpp"
#include "sim/base/memory.hpp"
#include "sim/programs/operator/world.hpp"
#include "slinky/names.hpp"

namespace sim {
namespace {

using core::Duration;
using core::Json;

constexpr Duration kReadyLimit{std::chrono::hours{2}};
constexpr int kRounds = 5;
constexpr int kDrained = 1000;

double real_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double process_cpu() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

/// Returns the size of the resident pages in bytes.
double resident() {
  std::ifstream file("/proc/self/statm");
  double size = 0, pages = 0;
  file >> size >> pages;
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE));
}

class Bench {
 public:
  explicit Bench(const BenchOptions& options)
      : options_(options),
        resident_before_(resident()),
        world_({.seed = 1, .kube_nodes = options.kube_nodes, .controllers = {.endpoints = false}}, {.show_plans = false}) {}

  bool run() {
    fmt::print("{} NodeSets of {} workers\n", options_.nodesets, options_.workers);
    if (!found()) return false;
    time_rest();
    time_passes();
    time_start();
    return time_drains();
  }

 private:
  [[nodiscard]] double workers() const { return static_cast<double>(options_.nodesets) * options_.workers; }

  OperatorProcess& process() { return static_cast<OperatorProcess&>(*world_.process(0)); }
  double operator_cpu() { return process().host().cpu(); }

  static bool ready(const Json& object) {
    const Json* conditions = core::find(object, {"status", "conditions"});
    return conditions != nullptr && std::ranges::any_of(*conditions, [](const Json& c) {
             return core::get_string(c, {"type"}) == api::kConditionReady && core::get_string(c, {"status"}) == "True";
           });
  }
  [[nodiscard]] bool all_ready() {
    for (const kube::Resource* resource :
         {&slinky::resources::kController, &slinky::resources::kRestApi, &slinky::resources::kNodeSet}) {
      for (const auto& [key, stored] : world_.api().store().all(table_name(*resource))) {
        if (!ready(stored->body)) return false;
      }
    }
    return true;
  }

  /// Runs until `done` returns true, which is checked each virtual second, or until kReadyLimit has passed. Returns the last
  /// result.
  bool run_until(const std::function<bool()>& done) {
    const core::MonoTime end = world_.loop().clock().mono() + kReadyLimit;
    while (!done() && world_.loop().clock().mono() < end) world_.loop().run_for(Duration{1000});
    return done();
  }

  bool found() {
    const double began = real_seconds(), cpu = process_cpu();
    const core::MonoTime virtual_began = world_.loop().clock().mono();
    world_.apply(controller_json());
    world_.apply(restapi_json());
    for (int i = 0; i < options_.nodesets; ++i) world_.apply(nodeset_json("set" + std::to_string(i), options_.workers));
    world_.start(world_.program());
    const bool done = run_until([this] { return all_ready(); });
    const Duration took = world_.loop().clock().mono() - virtual_began;
    fmt::print("{} {:.0f} s (virtual) after they were applied, {:.0f} s real\n", done ? "all ready" : "NOT READY",
               static_cast<double>(took.count()) / 1000, real_seconds() - began);
    fmt::print("CPU: {:.1f} s the operator, {:.0f} s with all that is simulated; longest turn of its loop {:.0f} ms\n",
               operator_cpu(), process_cpu() - cpu, process().host().longest_call() * 1000);
    const double writes = static_cast<double>(world_.judges().writes());
    fmt::print("writes: {:.0f}, {:.2f} a worker\n", writes, writes / workers());
    fmt::print("memory: {:.0f} bytes a worker resident with all that is simulated\n",
               (resident() - resident_before_) / workers());
    return done;
  }

  void time_rest() {
    constexpr int kMinutes = 5;
    world_.loop().run_for(Duration{60000});
    const double cpu = operator_cpu();
    const std::uint64_t writes = world_.judges().writes();
    world_.loop().run_for(std::chrono::minutes{kMinutes});
    fmt::print("at rest: {:.1f} s CPU an hour, {} writes in {} minutes\n", (operator_cpu() - cpu) * 60 / kMinutes,
               world_.judges().writes() - writes, kMinutes);
  }

  /// Returns the CPU time until the operator is idle again.
  double until_idle() {
    const double cpu = operator_cpu();
    world_.loop().run_until([this] { return process().manager().idle(); }, Duration{10000});
    return operator_cpu() - cpu;
  }

  void time_passes() {
    std::vector<std::pair<std::string, kube::Key>> keys;
    for (const auto& [controller, resource] : {std::pair{"controller", &slinky::resources::kController},
                                               {"restapi", &slinky::resources::kRestApi},
                                               {"nodeset", &slinky::resources::kNodeSet}}) {
      std::vector<double> passes;
      for (const auto& [key, stored] : world_.api().store().all(table_name(*resource))) {
        keys.emplace_back(controller, key);
        double least = 1e9;  // other events may disturb a measurement
        for (int i = 0; i < kRounds; ++i) {
          process().manager().wake(controller, key);
          least = std::min(least, until_idle());
        }
        passes.push_back(least);
      }
      std::ranges::sort(passes);
      fmt::print("a pass (observe and plan) of one key of {}: {:.2f} ms median, {:.2f} ms worst\n", controller,
                 passes[passes.size() / 2] * 1000, passes.back() * 1000);
    }
    for (const auto& [controller, key] : keys) process().manager().wake(controller, key);
    const std::size_t count = keys.size();
    fmt::print("a pass over all {} keys: {:.0f} ms\n", count, until_idle() * 1000);
  }

  /// Restarts the operator in the existing cluster, and measures its memory, first without Slurm's answers and then with them.
  void time_start() {
    world_.crash(0, Duration{1000});
    world_.loop().run_for(Duration{500});
    const double empty = allocated();
    world_.slurm_rates.refused = 1;
    world_.loop().run_until([this] { return world_.process(0) != nullptr && process().manager().synced(); }, Duration{60000});
    fmt::print("a start: {:.2f} s CPU until the caches are synced\n", process().host().cpu());
    world_.loop().run_for(Duration{1000});
    const double caches = allocated() - empty;
    world_.slurm_rates.refused = 0;
    world_.loop().run_for(Duration{60000});
    constexpr double kMega = 1e6;
    fmt::print("memory: {:.1f} MB in the operator's caches, {:.1f} MB with what Slurm says\n", caches / kMega,
               (allocated() - empty) / kMega);
  }

  /// Scales NodeSets that have kDrained workers in total to zero. Returns false if workers remain after kReadyLimit.
  bool time_drains() {
    const int nodesets = std::min(options_.nodesets, std::max(1, kDrained / options_.workers));
    std::vector<std::string> nodes;
    for (int i = 0; i < nodesets; ++i) {
      const std::string name = "set" + std::to_string(i);
      for (int k = 0; k < options_.workers; ++k) nodes.push_back(name + "-" + std::to_string(k));
      world_.merge(slinky::resources::kNodeSet, name, {{"spec", {{"replicas", 0}}}});
    }
    const SimSlurm& slurm = *world_.slurm();
    const auto within = [&](Duration step, const auto& done) {
      const core::MonoTime began = world_.loop().clock().mono();
      while (!done() && world_.loop().clock().mono() - began < kReadyLimit) world_.loop().run_for(step);
      return static_cast<double>((world_.loop().clock().mono() - began).count()) / 1000;
    };
    const double drained = within(Duration{20}, [&] {
      return std::ranges::all_of(nodes, [&](const std::string& name) {
        const SimNode* node = slurm.node(name);
        return node == nullptr || node->drain;
      });
    });
    const double gone =
        drained + within(Duration{500}, [&] {
          return std::ranges::none_of(nodes, [&](const std::string& name) { return world_.find(kube::resources::kPod, name); });
        });
    fmt::print("drain of {} idle workers of {} NodeSets: {:.2f} s virtual until all are drained, {:.1f} s until all are gone\n",
               nodes.size(), nodesets, drained, gone);
    return gone * 1000 < static_cast<double>(kReadyLimit.count());
  }

  BenchOptions options_;
  double resident_before_;
  OperatorWorld world_;
};

}  // namespace

bool print_bench(const BenchOptions& options) {
  return Bench(options).run();
}

}  // namespace sim
