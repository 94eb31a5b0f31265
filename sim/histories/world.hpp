// A simulated Kubernetes, Slurm in its pods, and the real programs, with users, administrators and accidents. One seed
// determines everything. The time is virtual.
//
//   sim::World world({.seed = 7}, std::move(programs));
//   sim::History history(world);
//   std::vector<std::string> wrong = history.run();     // empty: no oracle found a violation
//
// For single parts, see the unit tests in their folders. tests/conformance checks the simulated servers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/faults.hpp"
#include "sim/base/loop.hpp"
#include "sim/base/transport.hpp"
#include "sim/histories/program.hpp"
#include "sim/kube/sim_kube.hpp"
#include "sim/oracles/oracles.hpp"
#include "sim/site/slurm_site.hpp"

namespace sim {

struct WorldOptions {
  std::uint64_t seed = 1;
  int kube_nodes = 4;
  std::string slurm_release = "26.05.5";
  bool print = false;  ///< Writes the programs' logs to standard output.
  ApiOptions api{};
  ControllerOptions controllers{};
};

/// The probabilities of faults of requests to slurmrestd. They apply to requests that World::faults() leaves without a fault.
struct SlurmRates {
  double unchanged = 0;  ///< slurmctld misses changes: see SlurmRest::miss_changes.
  double refused = 0, slow = 0, empty = 0, bare = 0, other = 0, partial = 0, error = 0, lost = 0;
  core::Duration latency{0};  ///< The delay of each answer that has no fault.
};

class World {
 public:
  World(WorldOptions options, std::vector<std::unique_ptr<Program>> programs);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  SimLoop& loop() { return loop_; }
  SeededRandom& random() { return random_; }
  SimKube& kube() { return *kube_; }
  KubeApi& api() { return kube_->api(); }
  SlurmSite& site() { return site_; }
  Oracles& oracles() { return *oracles_; }
  /// The faults of the programs' requests to the API server and to slurmrestd. All their writes are numbered in one sequence.
  Faults& faults() { return faults_; }
  SlurmRates slurm_rates;
  [[nodiscard]] const WorldOptions& options() const { return options_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Program>>& programs() const { return programs_; }

  // --- Processes: the processes of all programs are numbered in one sequence ---
  /// Starts all processes of the program.
  void start(const Program& program);
  /// Kills the process now, and starts it again after `delay`.
  void crash(int slot, core::Duration delay);
  void pause(int slot, core::Duration length);
  void jump_clock(int slot, core::Duration by);
  /// Returns the slot of the first process that leads; 0 if none does.
  [[nodiscard]] int leader() const;
  /// Undoes the jumps of all clocks.
  void correct_clocks();
  [[nodiscard]] int process_count() const { return static_cast<int>(slots_.size()); }
  /// Returns the process in this slot; null while it is dead.
  [[nodiscard]] ProgramProcess* process(int slot) const { return slots_[static_cast<std::size_t>(slot)].process.get(); }
  /// Decides the fault of a request to slurmrestd by the process in this slot.
  SlurmFault slurm_fault(const net::HttpRequest& request, int slot);

  /// Makes the API server refuse connections for this long.
  void stop_api(core::Duration length);

  // --- Actions of users ---
  void apply(const core::Json& object, const char* ns = kNamespace);
  void remove(const kube::Resource& resource, const std::string& name, const std::string& propagation = "Background");
  /// Deletes the object and removes its finalizers, so that nobody can clean up.
  void tear_away(const kube::Resource& resource, const std::string& name);
  void evict(const std::string& pod);
  void merge(const kube::Resource& resource, const std::string& name, const core::Json& patch);
  [[nodiscard]] const core::Json* find(const kube::Resource& resource, const std::string& name) const;
  [[nodiscard]] std::vector<std::string> names(const kube::Resource& resource) const;
  /// Returns the names of worker pods that are not terminating.
  [[nodiscard]] std::vector<std::string> workers() const;
  /// Returns the Slurm of the Controller "demo"; null while no slurmctld answers.
  [[nodiscard]] SimSlurm* slurm() const;

  /// Runs until the declared state has held for a few seconds, an oracle finds a violation, or `limit` has passed. Returns why
  /// the declared state is not reached; empty if it is reached.
  std::vector<std::string> settle(core::Duration limit);

  static constexpr const char* kNamespace = "default";
  static constexpr const char* kCluster = "demo";

 private:
  struct Slot {
    Program* program;
    int which;
    std::unique_ptr<ProgramProcess> process{};
  };
  void start(int slot);
  void note_of(int slot, const std::string& what);

  WorldOptions options_;
  SimLoop loop_;
  SeededRandom random_;
  SlurmSite site_;
  std::unique_ptr<SimKube> kube_;
  std::unique_ptr<Oracles> oracles_;
  Faults faults_;
  std::vector<std::unique_ptr<Program>> programs_;
  std::vector<Slot> slots_;
};

}  // namespace sim
