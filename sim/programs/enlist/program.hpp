// slurm-enlist in a world: its coordinator, hosts with agents, a Slurm that runs beside the coordinator, and its oracle.
//
// Process 0 is the coordinator, and process N is the agent on host N. A process does nothing while its host is off or has not
// joined.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "enlist/agent/join.hpp"
#include "enlist/store/store.hpp"
#include "net/http.hpp"
#include "sim/histories/history.hpp"
#include "sim/histories/program.hpp"
#include "sim/histories/world.hpp"
#include "sim/programs/enlist/host.hpp"
#include "sim/programs/enlist/oracle.hpp"
#include "sim/slurm/rest.hpp"
#include "sim/slurm/sim_slurm.hpp"

namespace sim {

/// The running coordinator, as the simulated network sees it.
class EnlistCoordinator {
 public:
  virtual ~EnlistCoordinator() = default;
  virtual void serve(const net::HttpRequest& request, std::function<void(net::HttpResponse)> reply) = 0;
};

class EnlistProgram final : public Program {
 public:
  // Call these only after install().
  [[nodiscard]] SimSlurm& slurm() { return *slurm_; }
  [[nodiscard]] SlurmRest& rest() { return *rest_; }
  [[nodiscard]] EnlistOracle& oracle() { return *oracle_; }
  [[nodiscard]] std::vector<std::shared_ptr<EnlistHost>>& hosts() { return hosts_; }
  /// Returns the machine of slurmctld and of the coordinator.
  [[nodiscard]] EnlistHost& controller() { return *controller_; }
  [[nodiscard]] enlist::Contents& disk() { return disk_; }
  /// Returns the running coordinator; null while none runs.
  [[nodiscard]] EnlistCoordinator* coordinator() const { return coordinator_; }
  void set_coordinator(EnlistCoordinator* coordinator) { coordinator_ = coordinator; }

  /// Sends a request to the coordinator, and runs the world until the answer arrives. `host`: the client's host; null for an
  /// administrator. Returns nullopt if the client dies meanwhile.
  std::optional<core::Result<net::HttpResponse>> ask(World& world, const EnlistHost* host, net::HttpRequest request);
  /// Runs `slurm-enlist join` on a host. Returns the exit code; -1 if the command was killed.
  int join(World& world, EnlistHost& host, const std::string& token, bool again);
  /// Makes a token as an administrator does. Returns "" if the coordinator refuses or its answer is lost.
  std::string make_token(World& world, const std::string& pool, int uses);
  bool make_pool(World& world, const std::string& name, const std::string& node_conf);
  /// Runs `slurm-enlist leave` on a host, without waiting. Returns the exit code; -1 if the command was killed.
  int leave(World& world, EnlistHost& host);
  enum class Answer {
    kDone,
    kRefused,
    kUnknown,  ///< It is unknown whether the request was carried out.
  };
  /// Sends a request as an administrator.
  Answer ask_admin(World& world, const std::string& target, const core::Json& body);
  /// The value of CoordinatorOptions::forget_dead_after for coordinators that start later.
  std::optional<core::Duration> forget_dead_after;
  /// Reconfigures slurmctld as an administrator does.
  void reconfigure();
  /// Writes another auth key for slurmctld, which reads the key when it starts or is reconfigured.
  void change_key(World& world);

  // Implements Program.
  [[nodiscard]] std::string name() const override { return "enlist"; }
  [[nodiscard]] int processes() const override { return 1 + kHosts; }
  void install(World& world) override;
  [[nodiscard]] std::unique_ptr<ProgramProcess> start(World& world, int which, int slot) override;
  [[nodiscard]] std::unique_ptr<Workload> workload(World& world, History& history) override;

  static constexpr int kHosts = 4;
  static constexpr const char* kAdmin = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
  static constexpr const char* kOwn = "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc";

 private:
  int run_on(World& world, EnlistHost& host, const std::string& name,
             const std::function<int(const enlist::JoinParts&)>& command);
  [[nodiscard]] std::string configuration() const;
  [[nodiscard]] SlurmKeys keys_of(const std::string& node) const;

  enlist::Contents disk_;
  std::unique_ptr<SimSlurm> slurm_;
  std::unique_ptr<SlurmRest> rest_;
  std::unique_ptr<EnlistOracle> oracle_;
  std::shared_ptr<EnlistHost> controller_;
  std::vector<std::shared_ptr<EnlistHost>> hosts_;
  EnlistCoordinator* coordinator_ = nullptr;
};

}  // namespace sim
