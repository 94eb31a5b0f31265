// A history: the events of a simulated world, drawn from the world's seed. It begins with the storm: actions of users,
// accidents and faults. The calm follows: there are no faults, and the declared state must be reached and kept. At the end of
// half of the histories, everything is deleted and must disappear.
//
// Folder sim/histories: worlds, programs as plugins, and histories. Knows no program by name. Uses sim/oracles.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim/histories/world.hpp"

namespace sim {

class History {
 public:
  /// Uses the workload of each program of the world.
  explicit History(World& world);
  /// Returns the violations that the oracles found; empty if there are none.
  std::vector<std::string> run();

  // Workloads call these functions.
  SeededRandom& random() { return random_; }
  std::string some(const std::vector<std::string>& names);
  /// Begins a spell: draws new rates for all faults, possibly 0. These rates apply until the spell ends.
  void weather();
  /// Ends the spell: all faults get the rate 0. slurmrestd keeps the latency that it has without faults.
  void clear_up();
  /// Sets the latency of slurmrestd, also for later spells, until reset_latency() is called or the calm begins.
  void set_latency(core::Duration latency);
  /// Restores the latency that slurmrestd had at first.
  void reset_latency() { set_latency(usual_latency_); }
  [[nodiscard]] core::Duration latency() const { return fair_.latency; }

 private:
  void storm();
  void calm();
  std::vector<Workload::Action> accidents();
  void restore();

  World& world_;
  SeededRandom random_;
  std::vector<std::unique_ptr<Workload>> workloads_;
  std::vector<std::string> wrong_;
  SlurmRates fair_;  ///< The rates of slurmrestd between spells: a latency without faults.
  core::Duration usual_latency_{0};
  std::set<std::string> lost_nodes_;  ///< The Kubernetes nodes whose machines are off.
  std::set<std::string> cut_nodes_;
};

/// Runs one of the actions, drawn by weight.
void act_one(const std::vector<Workload::Action>& actions, SeededRandom& random);
/// Appends the differences between a final state and the expected one to `out`. `path` names the compared part.
void differences(const core::Json& expected, const core::Json& state, const std::string& path, std::vector<std::string>& out);

}  // namespace sim
