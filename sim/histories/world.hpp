// A simulated Kubernetes, Slurm in its pods, and the real programs; users, admins and accidents; all from one seed, on virtual
// time.
//
//   sim::World world({.seed = 7}, std::move(programs));
//   sim::History history(world);
//   std::vector<std::string> wrong = history.run();     // empty: the oracles have nothing to say
//
// For parts alone see the rooms' unit tests; for what the simulated servers are worth, tests/conformance.
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

/// What befalls requests to slurmrestd beyond what befalls any request.
struct SlurmRates {
  double unchanged = 0;  ///< By slurmctld.
  double refused = 0, slow = 0, empty = 0, bare = 0, other = 0, partial = 0, error = 0, lost = 0;
  core::Duration latency{0};  ///< Of each answer that nothing else befalls.
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
  /// Of requests of programs, to the API server and to slurmrestd alike: writes are numbered in one row.
  Faults& faults() { return faults_; }
  SlurmRates slurm_rates;
  [[nodiscard]] const WorldOptions& options() const { return options_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Program>>& programs() const { return programs_; }

  // Processes, of all programs in one row.
  /// All of the program.
  void start(const Program& program);
  /// The process dies now, and is started again after `delay`.
  void crash(int slot, core::Duration delay);
  void pause(int slot, core::Duration length);
  void jump_clock(int slot, core::Duration by);
  /// The first that leads.
  [[nodiscard]] int leader() const;
  /// Ends what jumps did.
  void correct_clocks();
  [[nodiscard]] int process_count() const { return static_cast<int>(slots_.size()); }
  /// Null while it is dead.
  [[nodiscard]] ProgramProcess* process(int slot) const { return slots_[static_cast<std::size_t>(slot)].process.get(); }
  /// What becomes of a request of this process to slurmrestd.
  SlurmFault slurm_fault(const net::HttpRequest& request, int slot);

  /// Nobody answers at the API server's address for so long.
  void stop_api(core::Duration length);

  // What users do.
  void apply(const core::Json& object, const char* ns = kNamespace);
  void remove(const kube::Resource& resource, const std::string& name, const std::string& propagation = "Background");
  /// Deletes it and takes its finalizers away: nobody gets to tidy up.
  void tear_away(const kube::Resource& resource, const std::string& name);
  void evict(const std::string& pod);
  void merge(const kube::Resource& resource, const std::string& name, const core::Json& patch);
  [[nodiscard]] const core::Json* find(const kube::Resource& resource, const std::string& name) const;
  [[nodiscard]] std::vector<std::string> names(const kube::Resource& resource) const;
  /// Names of worker pods that are not going.
  [[nodiscard]] std::vector<std::string> workers() const;
  /// The Slurm of the Controller "demo"; null while no slurmctld answers.
  [[nodiscard]] SimSlurm* slurm() const;

  /// Runs until the declared state is reached, and stays so for a few seconds. The last reasons otherwise.
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
