// The oracles that check the operator. Each oracle listens to the simulated cluster and reports violations. The comment at the
// top of its header describes the checks.
//
// jobs, workers, holds, drains, replicas, claims, secrets, tokens and writes check at all times. service checks once everything
// is settled. declared_state checks at the end. The result of final_state must be equal for all histories.
//
// The oracles decide from the simulated Slurm and the processes in the simulated pods whether something may be deleted, never
// from the operator's evidence.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"
#include "core/loop.hpp"
#include "net/http.hpp"
#include "plan/plan.hpp"
#include "sim/kube/api.hpp"
#include "sim/oracles/oracles.hpp"
#include "sim/oracles/secrets.hpp"
#include "sim/programs/operator/oracles/abandoned.hpp"
#include "sim/programs/operator/oracles/claims.hpp"
#include "sim/programs/operator/oracles/declared_state.hpp"
#include "sim/programs/operator/oracles/drains.hpp"
#include "sim/programs/operator/oracles/holds.hpp"
#include "sim/programs/operator/oracles/jobs.hpp"
#include "sim/programs/operator/oracles/looks.hpp"
#include "sim/programs/operator/oracles/replicas.hpp"
#include "sim/programs/operator/oracles/service.hpp"
#include "sim/programs/operator/oracles/tokens.hpp"
#include "sim/programs/operator/oracles/workers.hpp"
#include "sim/programs/operator/oracles/writes.hpp"
#include "sim/site/slurm_site.hpp"

namespace sim {

/// Owns the operator's oracles, passes them the events that can have only one listener, and forwards their violations.
class OperatorOracles final : public Oracle {
 public:
  OperatorOracles(Oracles& all, core::Loop& loop, KubeApi& api, SlurmSite& site);
  OperatorOracles(const OperatorOracles&) = delete;
  OperatorOracles& operator=(const OperatorOracles&) = delete;

  /// The namespaces in which operators may write; empty: all.
  void limit_to(const std::vector<std::string>& namespaces);

  /// Judges an operator's request to the API server or slurmrestd. `identity`: its name in the Lease; "": no Lease is needed.
  void request(const net::HttpRequest& request, bool to_slurm, const std::string& identity);
  [[nodiscard]] JobOracle& jobs() { return jobs_; }
  [[nodiscard]] ServiceOracle& service() { return service_; }
  /// Searches a plan of an operator for secrets.
  void read_plan(const plan::Plan& plan) { secrets_.read_plan(plan); }
  /// Return numbers of the operators' writes so far: of all except Leases, of those that keep Tokens as declared, and of those
  /// that repeat a warning.
  [[nodiscard]] std::uint64_t writes() const { return writes_.writes(); }
  [[nodiscard]] std::uint64_t token_writes() const { return writes_.token_writes(); }
  [[nodiscard]] std::uint64_t reminders() const { return writes_.reminders(); }

  /// Returns the state that must be equal for all histories: objects without the parts that depend on time and chance.
  [[nodiscard]] core::Json final_state() const;
  /// Returns how often things that users notice were started: daemons ("slurmctld demo"), and workers ("pod cpu-0").
  [[nodiscard]] core::Json starts() const;

  // Implements Oracle.
  void accident(const std::string& pod, Accident what) override { jobs_.accident(pod, what); }
  void clock_jumps(core::Duration by) override { jobs_.clocks_differ(core::Duration{std::abs(by.count())}); }
  void log_line(std::string_view line) override { secrets_.log_line(line); }
  [[nodiscard]] std::vector<std::string> unmet() const override { return declared_state_.unmet(); }

 private:
  void watch_cluster(SlurmSite::Cluster& cluster);
  void request_to_slurm(const net::HttpRequest& request, const std::string& identity);
  void request_to_kube(const net::HttpRequest& request, const std::string& identity);

  Oracles& all_;
  KubeApi& api_;
  SlurmSite& site_;
  // Events for all oracles reach them in this order.
  JobOracle jobs_;
  ServiceOracle service_;
  DrainOracle drains_;
  Looks looks_;
  AbandonedRecords abandoned_;
  HoldOracle holds_;
  WorkerOracle workers_;
  ReplicaOracle replicas_;
  ClaimOracle claims_;
  SecretOracle secrets_;
  TokenOracle tokens_;
  WriteOracle writes_;
  DeclaredState declared_state_;
};

}  // namespace sim
