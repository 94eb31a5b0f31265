// The oracles that judge a history. Each listens to the simulated cluster and reports violations. The begin of its header says
// what it checks.
//
// Always: jobs, workers, holds, drains, replicas, claims, secrets, tokens, writes. Once everything is settled: service. At the
// end: declared_state, and final_state, which is equal for all histories.
//
// Whether something may be deleted depends on the simulated Slurm and on what runs in the simulated pods, never on the
// operator's evidence.
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

/// Owns the oracles, forwards events to them, and collects their violations.
class Oracles {
 public:
  Oracles(core::Loop& loop, KubeApi& api, SlurmSite& site);
  Oracles(const Oracles&) = delete;
  Oracles& operator=(const Oracles&) = delete;

  /// The namespaces in which operators may write; empty: all.
  void limit_to(const std::vector<std::string>& namespaces);
  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }
  [[nodiscard]] bool ok() const { return violations_.empty(); }
  void violation(std::string text);

  /// Adds an event to the last ones, for the report of a failing seed.
  void note(std::string text);
  [[nodiscard]] const std::deque<std::string>& notes() const { return notes_; }

  /// An operator's request to the API server or to slurmrestd. `identity` is its name in the Lease; "": none needed.
  void request(const net::HttpRequest& request, bool to_slurm, const std::string& identity);
  /// The pod with this uid has an accident.
  void accident(const std::string& pod, Accident what) { jobs_.accident(pod, what); }
  [[nodiscard]] const JobOracle& jobs() const { return jobs_; }
  [[nodiscard]] JobOracle& jobs() { return jobs_; }
  [[nodiscard]] ServiceOracle& service() { return service_; }
  void log_line(std::string_view line) { secrets_.log_line(line); }
  /// A plan of an operator.
  void read_plan(const plan::Plan& plan) { secrets_.read_plan(plan); }
  /// Return the number of the operators' writes so far, except Leases; of those that keep Tokens as declared; and of those that
  /// repeat a warning.
  [[nodiscard]] std::uint64_t writes() const { return writes_.writes(); }
  [[nodiscard]] std::uint64_t token_writes() const { return writes_.token_writes(); }
  [[nodiscard]] std::uint64_t reminders() const { return writes_.reminders(); }

  /// Returns why the declared state is not reached; empty if it is.
  [[nodiscard]] std::vector<std::string> unmet() const { return declared_state_.unmet(); }
  /// Returns the state that must be equal for all histories: objects without the parts that depend on time and chance.
  [[nodiscard]] core::Json final_state() const;
  /// Returns how often things that users notice were started: daemons ("slurmctld demo"), and workers ("pod cpu-0").
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
