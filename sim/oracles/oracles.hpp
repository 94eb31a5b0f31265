// Who judges a history: each oracle listens in on the simulated cluster, and says what must not have happened. What each of
// them promises stands at the top of its header.
//
// At every step: jobs, workers, holds, drains, replicas, claims, secrets, tokens, writes. Once all is well: service. At the
// end: declared_state, and final_state, which is the same however a history went.
//
// What may go is told by the simulated Slurm and by what runs in the simulated pods, never by the operator's evidence.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"
#include "core/loop.hpp"
#include "net/http.hpp"
#include "plan/plan.hpp"
#include "sim/kube/api.hpp"
#include "sim/oracles/abandoned.hpp"
#include "sim/oracles/claims.hpp"
#include "sim/oracles/declared_state.hpp"
#include "sim/oracles/drains.hpp"
#include "sim/oracles/holds.hpp"
#include "sim/oracles/jobs.hpp"
#include "sim/oracles/looks.hpp"
#include "sim/oracles/replicas.hpp"
#include "sim/oracles/secrets.hpp"
#include "sim/oracles/service.hpp"
#include "sim/oracles/tokens.hpp"
#include "sim/oracles/workers.hpp"
#include "sim/oracles/writes.hpp"
#include "sim/site/slurm_site.hpp"

namespace sim {

/// Owns the oracles, tells them what happens where only one may listen, and collects what they say.
class Oracles {
 public:
  Oracles(core::Loop& loop, KubeApi& api, SlurmSite& site);
  Oracles(const Oracles&) = delete;
  Oracles& operator=(const Oracles&) = delete;

  /// Where operators may write; empty: everywhere.
  void limit_to(const std::vector<std::string>& namespaces);
  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }
  [[nodiscard]] bool ok() const { return violations_.empty(); }
  void violation(std::string text);

  /// The last things that happened, for the report of a failing seed.
  void note(std::string text);
  [[nodiscard]] const std::deque<std::string>& notes() const { return notes_; }

  /// A request of an operator, on its way to the API server or to slurmrestd. `identity`: its name in the Lease; "": it needs
  /// none.
  void request(const net::HttpRequest& request, bool to_slurm, const std::string& identity);
  /// A pod (by its uid) has one.
  void accident(const std::string& pod, Accident what) { jobs_.accident(pod, what); }
  [[nodiscard]] const JobOracle& jobs() const { return jobs_; }
  [[nodiscard]] JobOracle& jobs() { return jobs_; }
  [[nodiscard]] ServiceOracle& service() { return service_; }
  void log_line(std::string_view line) { secrets_.log_line(line); }
  /// A plan that an operator made: all that could be shown of it.
  void read_plan(const plan::Plan& plan) { secrets_.read_plan(plan); }
  /// Writes of operators but Leases, so far; and of these, the ones that keep Tokens as they are declared, and
  /// those that tell a warning again.
  [[nodiscard]] std::uint64_t writes() const { return writes_.writes(); }
  [[nodiscard]] std::uint64_t token_writes() const { return writes_.token_writes(); }
  [[nodiscard]] std::uint64_t reminders() const { return writes_.reminders(); }

  /// What keeps the declared state from being reached; empty when it is.
  [[nodiscard]] std::vector<std::string> unmet() const { return declared_state_.unmet(); }
  /// The state that must be the same however a history went: objects without what depends on time and chance.
  [[nodiscard]] core::Json final_state() const;
  /// How often what users notice was begun: starts of daemons ("slurmctld demo"), and the making of workers ("pod cpu-0").
  [[nodiscard]] core::Json starts() const;

 private:
  void watch_cluster(SlurmSite::Cluster& cluster);
  void request_to_slurm(const net::HttpRequest& request, const std::string& identity);
  void request_to_kube(const net::HttpRequest& request, const std::string& identity);

  core::Loop& loop_;
  KubeApi& api_;
  SlurmSite& site_;
  std::vector<std::string> violations_;
  std::deque<std::string> notes_;
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
