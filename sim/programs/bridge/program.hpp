// The bridge in a world: its process, a Slurm that is not in pods, what users and administrators do, and its oracle.
//
// kube-0 and kube-1 are labelled as external nodes of Slurm, which the bridge registers. An administrator has registered
// kube-2, and kube-3 has a slurmd beside its kubelet. All four have the same name in Slurm as in Kubernetes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/http.hpp"
#include "plan/plan.hpp"
#include "sim/histories/history.hpp"
#include "sim/histories/program.hpp"
#include "sim/histories/world.hpp"
#include "sim/programs/bridge/oracle.hpp"
#include "sim/slurm/rest.hpp"
#include "sim/slurm/sim_slurm.hpp"

namespace sim {

class BridgeProgram final : public Program {
 public:
  // Call these only after install().
  [[nodiscard]] SimSlurm& slurm() { return *slurm_; }
  [[nodiscard]] BridgeOracle& oracle() { return *oracle_; }
  [[nodiscard]] SlurmRest& rest() { return *rest_; }

  // If set, on_plan is called with each plan of the bridge, and on_request with each of the bridge's requests to slurmrestd.
  // on_request returns the fault of the request.
  std::function<void(const plan::Plan&)> on_plan;
  std::function<SlurmFault(const net::HttpRequest&)> on_request;

  // Implements Program.
  [[nodiscard]] std::string name() const override { return "bridge"; }
  void install(World& world) override;
  [[nodiscard]] std::unique_ptr<ProgramProcess> start(World& world, int which, int slot) override;
  [[nodiscard]] std::unique_ptr<Workload> workload(World& world, History& history) override;

  /// Sets the labels, addresses and capacity of the Kubernetes nodes, and creates the nodes in Slurm that the bridge does not
  /// register. Call it once there are machines.
  void add_nodes(World& world);
  /// Sets the label, address and capacity of the Kubernetes node. Creates the node if it is gone.
  void make_host(World& world, const std::string& name);
  /// Registers kube-2 as an administrator does, unless Slurm already has it.
  void register_by_hand();

  static constexpr const char* kByHand = "kube-2";
  static constexpr const char* kHybrid = "kube-3";
  static constexpr const char* kKey = "a key of 32 bytes for the tokens..";
  static constexpr const char* kHost = "slurmrestd";

 private:
  std::unique_ptr<SimSlurm> slurm_;
  std::unique_ptr<SlurmRest> rest_;
  std::unique_ptr<BridgeOracle> oracle_;
};

/// Returns a pod for the bridge: with its gate, and without restarts.
core::Json bridge_pod(const std::string& name, const std::string& cpu, const std::string& memory);

}  // namespace sim
