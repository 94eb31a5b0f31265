#include "sim/histories/trials.hpp"

#include <chrono>
#include <utility>

namespace sim {
namespace {

using core::Duration;

/// The duration of a fault of watches. Long enough for the effects of a write and for the reopening of watches.
constexpr Duration kOfWatches{3000};
/// The time for which bookmarks are withheld: twice the server's interval of bookmarks.
constexpr Duration kOfBookmarks{20000};
constexpr Duration kOfApi{10000};
/// The duration of a fault of Slurm: longer than the operator waits for slurmrestd.
constexpr Duration kOfSlurm{20000};
constexpr Duration kForward{std::chrono::minutes{5}};
constexpr Duration kBack{std::chrono::minutes{-5}};
/// The latency of a slow slurmrestd: longer than a pass.
constexpr Duration kLatency{2000};
/// The time for which a leader is away. A Lease lasts 15 s.
constexpr Duration kOfLeader{40000};

void spell(World& world, double& rate, Duration length) {
  rate = 1;
  world.loop().after(length, [&rate] { rate = 0; });
}

/// Ends all watches and drops the history, so that no watch can be resumed.
void forget(World& world) {
  world.api().compact();
  world.api().end_watches();
}

Trial request_fault(Fault fault) {
  return {std::string(to_string(fault)), 1, [=](World& world, std::uint64_t write) { world.faults().at_write(write, fault); }};
}

Trial event(std::string name, std::function<void(World&)> begin, int processes = 1) {
  return {name, processes, [name, begin = std::move(begin)](World& world, std::uint64_t write) {
            world.faults().at_write(write, [&world, name, begin] {
              world.oracles().note("--- fault: " + name + " ---");
              begin(world);
            });
          }};
}

Trial of_watches(std::string name, double FaultRates::*rate) {
  return event(std::move(name), [=](World& world) { spell(world, world.faults().rates.*rate, kOfWatches); });
}

Trial of_slurm(std::string name, double SlurmRates::*rate) {
  return event(std::move(name), [=](World& world) { spell(world, world.slurm_rates.*rate, kOfSlurm); });
}

std::vector<Trial> make_trials() {
  std::vector<Trial> out;
  for (const Fault fault : all_faults()) out.push_back(request_fault(fault));
  out.push_back(of_watches("watches cut", &FaultRates::cut));
  out.push_back(of_watches("events twice", &FaultRates::duplicate));
  out.push_back(of_watches("events late", &FaultRates::delay));
  out.push_back(event("watches 410", [](World& world) {
    spell(world, world.faults().rates.gone, kOfWatches);
    forget(world);
  }));
  // Bookmarks only matter when a watch is resumed. So all watches end when the faults of bookmarks end.
  out.push_back(event("no bookmarks", [](World& world) {
    spell(world, world.faults().rates.withhold_bookmark, kOfBookmarks);
    world.loop().after(kOfBookmarks, [&world] { forget(world); });
  }));
  out.push_back(event("API server away", [](World& world) { world.stop_api(kOfApi); }));
  out.push_back(of_slurm("slurmctld sees no change", &SlurmRates::unchanged));
  out.push_back(of_slurm("slurmrestd away", &SlurmRates::refused));
  out.push_back(of_slurm("slurmrestd slow", &SlurmRates::slow));
  out.push_back(of_slurm("slurmrestd empty", &SlurmRates::empty));
  out.push_back(of_slurm("slurmrestd bare", &SlurmRates::bare));
  out.push_back(of_slurm("slurmrestd of another cluster", &SlurmRates::other));
  out.push_back(of_slurm("slurmrestd partial", &SlurmRates::partial));
  out.push_back(of_slurm("slurmrestd errors", &SlurmRates::error));
  out.push_back(of_slurm("slurmrestd replies lost", &SlurmRates::lost));
  out.push_back(event("slurmrestd slow for good", [](World& world) { world.slurm_rates.latency = kLatency; }));
  out.push_back(event("clock forward", [](World& world) { world.jump_clock(world.leader(), kForward); }));
  out.push_back(event("clock back", [](World& world) { world.jump_clock(world.leader(), kBack); }));
  out.push_back(event(
      "leader paused", [](World& world) { world.pause(world.leader(), kOfLeader); }, 2));
  out.push_back(event(
      "leader dies", [](World& world) { world.crash(world.leader(), kOfLeader); }, 2));
  return out;
}

}  // namespace

const std::vector<Trial>& all_trials() {
  static const std::vector<Trial> kAll = make_trials();
  return kAll;
}

}  // namespace sim
