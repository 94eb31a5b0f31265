// Who judges the operator: each oracle listens in on the simulated cluster, and says what must not have happened. What each of
// them promises stands at the top of its header.
//
// At every step: jobs, workers, holds, drains, replicas, claims, secrets, tokens, writes. Once all is well: service. At the
// end: declared_state, and final_state, which is the same however a history went.
//
// What may go is told by the simulated Slurm and by what runs in the simulated pods, never by the operator's evidence.
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

/// Owns the operator's oracles, tells them what happens where only one may listen, and hands on what they say.
class OperatorOracles final : public Oracle {
 public:
  OperatorOracles(Oracles& all, core::Loop& loop, KubeApi& api, SlurmSite& site);
  OperatorOracles(const OperatorOracles&) = delete;
  OperatorOracles& operator=(const OperatorOracles&) = delete;

  /// Where operators may write; empty: everywhere.
  void limit_to(const std::vector<std::string>& namespaces);

  /// A request of an operator, on its way to the API server or to slurmrestd. `identity`: its name in the Lease; "": it needs
  /// none.
  void request(const net::HttpRequest& request, bool to_slurm, const std::string& identity);
  [[nodiscard]] JobOracle& jobs() { return jobs_; }
  [[nodiscard]] ServiceOracle& service() { return service_; }
  /// A plan that an operator made: all that could be shown of it.
  void read_plan(const plan::Plan& plan) { secrets_.read_plan(plan); }
  /// Writes of operators but Leases, so far; and of these, the ones that keep Tokens as they are declared, and
  /// those that tell a warning again.
  [[nodiscard]] std::uint64_t writes() const { return writes_.writes(); }
  [[nodiscard]] std::uint64_t token_writes() const { return writes_.token_writes(); }
  [[nodiscard]] std::uint64_t reminders() const { return writes_.reminders(); }

  /// The state that must be the same however a history went: objects without what depends on time and chance.
  [[nodiscard]] core::Json final_state() const;
  /// How often what users notice was begun: starts of daemons ("slurmctld demo"), and the making of workers ("pod cpu-0").
  [[nodiscard]] core::Json starts() const;

  // Oracle.
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
  // What is told to all is told in this order.
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
