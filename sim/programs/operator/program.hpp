// The real operator in a world, in one or more processes that elect a leader.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kube/app/manager.hpp"
#include "kube/client/client.hpp"
#include "kube/client/credentials.hpp"
#include "operator/operator.hpp"
#include "sim/base/transport.hpp"
#include "sim/histories/world.hpp"
#include "sim/oracles/tap.hpp"
#include "sim/programs/operator/oracles/oracles.hpp"

namespace sim {

struct OperatorOptions {
  int processes = 1;                      ///< The number of operator processes. Two or more elect a leader.
  std::vector<std::string> namespaces{};  ///< The namespaces in which operators act; empty: all.
  /// Whether every plan is passed to the oracles. If false, measurements do not include the work and memory of oracles.
  bool show_plans = true;
};

class OperatorProgram final : public Program {
 public:
  explicit OperatorProgram(OperatorOptions options = {}) : options_(std::move(options)) {}
  [[nodiscard]] const OperatorOptions& options() const { return options_; }
  /// Returns the oracles. Call this only after install().
  [[nodiscard]] OperatorOracles& oracles() { return *oracles_; }
  [[nodiscard]] Server& server() { return *tap_; }

  // Implements Program.
  [[nodiscard]] std::string name() const override { return "operator"; }
  [[nodiscard]] int processes() const override { return options_.processes; }
  void install(World& world) override;
  [[nodiscard]] std::unique_ptr<ProgramProcess> start(World& world, int which, int slot) override;
  [[nodiscard]] std::unique_ptr<Workload> workload(World& world, History& history) override;

 private:
  OperatorOptions options_;
  std::unique_ptr<OperatorOracles> oracles_;
  std::unique_ptr<Tap> tap_;
};

class OperatorProcess final : public ProgramProcess {
 public:
  OperatorProcess(World& world, OperatorProgram& program, int which, int slot);
  [[nodiscard]] kube::Manager& manager() { return manager_; }
  [[nodiscard]] SimHost& host() override { return host_; }
  [[nodiscard]] bool leads() const override;

 private:
  [[nodiscard]] kube::ClientOptions client_options() const;
  [[nodiscard]] kube::ManagerOptions manager_options(World& world, OperatorProgram& program, int slot) const;

  World& world_;
  SimHost host_;
  SeededRandom random_;
  OracleLogger log_;
  Transport transport_;
  std::string identity_;  ///< The name in the Lease; "" without an election.
  kube::StaticCredentials credentials_;
  kube::Client client_;
  kube::Manager manager_;
  op::Operator operator_;
};

}  // namespace sim
