#include "sim/programs/bridge/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/memory.hpp"
#include "sim/programs/bridge/program.hpp"

namespace sim {
namespace {

using core::Duration;
using core::Json;
namespace res = kube::resources;

constexpr Duration kLimit{std::chrono::hours{2}};
/// slurmrestd 26.05 took 2 ms for each five jobs in a list, measured with 1,300 jobs on the local cluster.
constexpr std::size_t kMilliseconds = 2, kJobs = 5;

/// Reports whether the request is one of a poll, which reads all nodes, jobs or partitions.
bool is_poll(const net::HttpRequest& request) {
  const std::string_view path = std::string_view(request.target).substr(0, request.target.find('?'));
  constexpr std::array<std::string_view, 3> kTables{"/nodes/", "/jobs/", "/partitions/"};
  return request.method == "GET" && std::ranges::any_of(kTables, [&](std::string_view table) { return path.ends_with(table); });
}

std::vector<std::unique_ptr<Program>> only(std::unique_ptr<Program> program) {
  std::vector<std::unique_ptr<Program>> out;
  out.push_back(std::move(program));
  return out;
}

class Bench {
 public:
  explicit Bench(const BridgeBenchOptions& options)
      : options_(options),
        world_({.seed = 1, .kube_nodes = options.nodes, .controllers = {.endpoints = false}},
               only(std::make_unique<BridgeProgram>())) {
    program().on_plan = [this](const plan::Plan&) { ++passes_; };
    program().on_request = [this](const net::HttpRequest& request) { return slowed(request); };
  }

  bool run() {
    fmt::print("{} pods, {} nodes\n", options_.pods, options_.nodes);
    program().add_nodes(world_);
    bool done = time_nodes() && time_pods(options_.pods - options_.pods / 5);
    if (done) time_rest();
    done = done && time_pods(options_.pods / 5);
    if (done) {
      time_rest();
      time_start();
      done = time_cancel();
    }
    for (const std::string& violation : world_.oracles().violations()) fmt::print("violation: {}\n", violation);
    return done && world_.oracles().ok();
  }

 private:
  BridgeProgram& program() { return static_cast<BridgeProgram&>(*world_.programs().front()); }
  SimSlurm& slurm() { return program().slurm(); }
  double bridge_cpu() { return world_.process(0)->host().cpu(); }

  /// Counts the request. Delays a list of jobs for as long as a real slurmrestd takes, because the bridge polls less often when
  /// polls take long.
  SlurmFault slowed(const net::HttpRequest& request) {
    ++(is_poll(request) ? polls_ : others_);
    const bool jobs = is_poll(request) && request.target.find("/jobs/") != std::string::npos;
    if (!jobs) return {};
    return {.kind = SlurmFault::Kind::kSlow, .delay = Duration(slurm().jobs().size() * kMilliseconds / kJobs)};
  }

  /// Runs until `done` returns true, which is checked each virtual second, and prints what the bridge has done until then.
  /// Returns false if that takes longer than kLimit.
  bool time(const std::string& what, const std::function<bool()>& done) {
    const core::MonoTime began = world_.loop().clock().mono();
    const double cpu_before = world_.process(0) == nullptr ? 0 : bridge_cpu();
    passes_ = 0;
    do {
      world_.loop().run_for(Duration{1000});
    } while (!done() && world_.loop().clock().mono() - began < kLimit);
    const double cpu = bridge_cpu() - cpu_before, passes = static_cast<double>(passes_);
    const auto took = std::chrono::duration_cast<std::chrono::seconds>(world_.loop().clock().mono() - began);
    fmt::print("{}{}: {:.0f} passes in {:.2f} s CPU of the bridge, {:.0f} a second; {} s virtual\n",
               done() ? "" : "NOT DONE: ", what, passes, cpu, passes / cpu, took.count());
    return done();
  }

  bool time_nodes() {
    world_.start(program());
    return time(fmt::format("{} nodes registered", options_.nodes),
                [this] { return slurm().nodes().size() == static_cast<std::size_t>(options_.nodes); });
  }

  int count(SimJob::State state) {
    return static_cast<int>(std::ranges::count_if(slurm().jobs(), [&](const auto& job) { return job.second.state == state; }));
  }
  int bound() {
    return static_cast<int>(std::ranges::count_if(world_.api().store().all("pods"), [](const auto& pod) {
      return !core::get_string(pod.second->body, {"spec", "nodeName"}).empty();
    }));
  }

  /// Creates `more` pods, and runs until each pod is bound or waits in the queue.
  bool time_pods(int more) {
    for (int i = 0; i < more; ++i) {
      Json pod = bridge_pod("p" + std::to_string(pods_++), "1", "1000Mi");
      pod["metadata"]["namespace"] = World::kNamespace;
      (void)world_.api().create(res::kPod, pod);
    }
    return time(fmt::format("{} pods submitted, and bound if there is room", more), [this] {
      const int running = count(SimJob::State::kRunning);
      return running + count(SimJob::State::kPending) == pods_ && bound() == running;
    });
  }

  /// Prints what the bridge costs when nothing changes.
  void time_rest() {
    constexpr int kMinutes = 5;
    world_.loop().run_for(Duration{60000});
    const double cpu = bridge_cpu();
    polls_ = others_ = 0;
    world_.loop().run_for(std::chrono::minutes{kMinutes});
    const auto a_minute = [](std::uint64_t requests) { return static_cast<double>(requests) / kMinutes; };
    fmt::print("at rest, {} pods run and {} wait: {:.1f} s CPU an hour\n", count(SimJob::State::kRunning),
               count(SimJob::State::kPending), (bridge_cpu() - cpu) * 60 / kMinutes);
    fmt::print("  requests to slurmrestd a minute: {:.1f} of polls, {:.1f} others\n", a_minute(polls_), a_minute(others_));
  }

  /// Cancels all running jobs at once, and prints how long it takes until the last of their pods is being deleted. Jobs that
  /// wait start meanwhile.
  bool time_cancel() {
    std::set<std::string> left;
    for (const auto& [key, pod] : world_.api().store().all("pods")) {
      if (!core::get_string(pod->body, {"spec", "nodeName"}).empty()) left.insert(key.name);
    }
    std::vector<std::int64_t> running;
    for (const auto& [id, job] : slurm().jobs()) {
      if (job.state == SimJob::State::kRunning) running.push_back(id);
    }
    const core::MonoTime began = world_.loop().clock().mono();
    const auto seconds = [&] { return static_cast<double>((world_.loop().clock().mono() - began).count()) / 1000; };
    const double cpu = bridge_cpu();
    const std::size_t all = left.size();
    double half = 0;
    for (const std::int64_t id : running) slurm().cancel(id);
    while (!left.empty() && world_.loop().clock().mono() - began < kLimit) {
      world_.loop().run_for(Duration{100});
      std::erase_if(left, [&](const std::string& name) {
        const Json* pod = world_.api().peek(res::kPod, {World::kNamespace, name});
        return pod == nullptr || core::find(*pod, {"metadata", "deletionTimestamp"}) != nullptr;
      });
      if (half == 0 && left.size() <= all / 2) half = seconds();
    }
    fmt::print(
        "{}{} jobs cancelled at once: half of their pods are evicted after {:.1f} s virtual, all after {:.1f} s; {:.2f} s "
        "CPU\n",
        left.empty() ? "" : "NOT DONE: ", running.size(), half, seconds(), bridge_cpu() - cpu);
    return left.empty();
  }

  /// Restarts the bridge, which looks at all pods and nodes again, and measures its memory.
  void time_start() {
    world_.crash(0, Duration{1000});
    world_.loop().run_for(Duration{500});
    const double empty = allocated();
    const core::MonoTime settled = world_.loop().clock().mono() + std::chrono::minutes{1};
    time("a start", [&] { return world_.loop().clock().mono() >= settled; });
    fmt::print("memory: {:.1f} MB allocated\n", (allocated() - empty) / 1e6);
  }

  BridgeBenchOptions options_;
  std::uint64_t passes_ = 0, polls_ = 0, others_ = 0;
  int pods_ = 0;
  World world_;
};

}  // namespace

bool print_bridge_bench(const BridgeBenchOptions& options) {
  return Bench(options).run();
}

}  // namespace sim
