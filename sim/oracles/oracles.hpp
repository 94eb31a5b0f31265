// Who judges a history: each oracle listens in on the simulated cluster, and says what must not have happened.
//
// At every step: no job is lost but by who may do so (sim/oracles/jobs.hpp); no worker with jobs is taken away by the operator,
// nor one that Slurm may still give jobs, nor the record of such a one; no drain of somebody else's is undone by it, or lost
// with its record; it makes no more workers than were wished for, and deletes none while there is no Controller; what it
// deletes it names by uid; it writes only while it holds the Lease; no secret leaves through plans, status, events, logs or
// labels; observedGeneration never goes back; Secrets and ConfigMaps of users are not written to; a token that is not to be
// refreshed is minted once. At the end (see unmet): the declared state is reached. At rest: nothing is written but what keeps
// tokens fresh.
//
// What may go is told by the simulated Slurm and by what runs in the simulated pods, never by the operator's evidence.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/log.hpp"
#include "plan/plan.hpp"
#include "sim/base/server.hpp"
#include "sim/kube/api.hpp"
#include "sim/oracles/drains.hpp"
#include "sim/oracles/jobs.hpp"
#include "sim/oracles/service.hpp"
#include "sim/site/slurm_site.hpp"

namespace sim {

/// How operators name themselves to the API server.
inline constexpr std::string_view kOperatorAgent = "slurm-operator";
/// Who changes nodes by hand: drains of this user are nobody else's business.
inline constexpr std::string_view kSlurmAdmin = "admin";
/// Of the Lease by which operators elect their leader.
inline const kube::Key kLeaseKey{"slurm-operator", "slurm-operator"};
/// Identity in the Lease; "" when nobody holds it.
std::string lease_holder(const KubeApi& api);
/// The User-Agent of a process of the operator: with it every request tells whose it is, also when its sender has died.
std::string operator_agent(std::string_view identity);

class Oracles {
 public:
  Oracles(core::Loop& loop, KubeApi& api, SlurmSite& site);
  Oracles(const Oracles&) = delete;
  Oracles& operator=(const Oracles&) = delete;

  /// Where operators may write; empty: everywhere.
  void limit_to(const std::vector<std::string>& namespaces) {
    namespaces_ = namespaces;
    service_.limit_to(namespaces);
  }
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
  [[nodiscard]] ServiceOracle& service() { return service_; }
  void log_line(std::string_view line);
  /// A plan that an operator made: all that could be shown of it.
  void read_plan(const plan::Plan& plan);
  /// Writes of operators but Leases, so far; and of these, the ones that keep Tokens as they are declared.
  [[nodiscard]] std::uint64_t writes() const { return writes_; }
  [[nodiscard]] std::uint64_t token_writes() const { return token_writes_; }

  /// What keeps the declared state from being reached; empty when it is.
  [[nodiscard]] std::vector<std::string> unmet() const;
  /// The state that must be the same however a history went: objects without what depends on time and chance.
  [[nodiscard]] core::Json final_state() const;
  /// How often what users notice was begun: starts of daemons ("slurmctld demo"), and the making of workers ("pod cpu-0").
  [[nodiscard]] core::Json starts() const;

 private:
  /// An operator asks for one Slurm node.
  struct Look {
    core::MonoTime at;
    bool idle_and_held = false;  ///< See idle_and_held in oracles.cpp.
  };
  /// What an admin did to a node and did not undo.
  struct Hold {
    bool drain = false, down = false;
    core::MonoTime since;
  };
  void watch_admission();
  void watch_store();
  void watch_cluster(SlurmSite::Cluster& cluster);
  void slurmd_ends(const SlurmSite::Cluster& cluster, const std::string& node);
  void worker_deletion(const core::Json& pod);
  void record_deletion(const SlurmSite::Cluster& cluster, const SimNode& node);
  [[nodiscard]] bool wants_worker(const kube::Key& controller, const std::string& node) const;
  void count_workers(const core::Json& made);
  void look(const std::string& node);
  [[nodiscard]] bool was_idle_and_held(const std::string& node) const;
  [[nodiscard]] bool was_freed_since(const kube::Key& controller, const std::string& node) const;
  void abandon_records(const kube::Key& controller);
  void abandon_record(const core::Json& pod);
  void abandon_left(const core::Json& nodeset);
  [[nodiscard]] bool acts_in(std::string_view ns) const;
  void learn_secret(const core::Json& secret);
  void learn_form(const std::string& text);
  void learn_token(const core::Json& secret);
  [[nodiscard]] bool about_tokens(const net::HttpRequest& request) const;
  void fenced_write(const net::HttpRequest& request, bool to_slurm, const std::string& identity);
  void search_secrets(std::string_view text, std::string_view where);
  void unmet_nodeset(const core::Json& nodeset, std::vector<std::string>& out) const;
  void unmet_slurm(const SlurmSite::Cluster& cluster, std::vector<std::string>& out) const;
  void unmet_controller(const kube::Key& key, const core::Json& object, std::vector<std::string>& out) const;
  void unmet_inputs(const SlurmSite::Cluster& cluster, const core::Json& controller, std::vector<std::string>& out) const;
  void unmet_token(const core::Json& token, std::vector<std::string>& out) const;
  [[nodiscard]] std::optional<std::string> secret_value(const kube::Key& key, const std::string& field) const;

  core::Loop& loop_;
  KubeApi& api_;
  SlurmSite& site_;
  JobOracle jobs_;
  ServiceOracle service_;
  DrainOracle drains_;
  std::vector<std::string> violations_, namespaces_;
  std::deque<std::string> notes_;
  std::uint64_t writes_ = 0, token_writes_ = 0;
  std::map<std::pair<kube::Key, std::string>, Hold> foreign_;
  std::map<std::pair<kube::Key, std::string>, core::MonoTime> freed_;  ///< When an administrator last did.
  /// By a NodeSet's uid: the workers that were wished for, and since when.
  std::map<std::string, std::vector<std::pair<core::MonoTime, std::int64_t>>> wished_;
  std::map<kube::Key, core::MonoTime> gone_;  ///< When a Controller last went.
  std::map<kube::Key, core::MonoTime> left_;  ///< When a worker last ended, was deleted, or is gone.
  std::map<std::string, Look> asked_;         ///< When an operator last asked for a Slurm node by itself.
  std::set<std::string> alone_;               ///< Uids of NodeSets that were deleted with --cascade=orphan.
  /// Records that outlived their Controller, or a NodeSet that nobody could tidy up after, or whose worker was nobody's.
  std::set<std::pair<kube::Key, std::string>> abandoned_;
  std::set<std::string> secrets_;                 ///< In every form in which they might show.
  std::deque<std::string> plans_;                 ///< The last ones: a secret may be known only once it is written.
  std::map<std::string, std::int64_t> observed_;  ///< observedGeneration by uid.
  std::map<std::string, int> made_;               ///< Workers, by name.
  std::map<kube::Key, std::pair<std::string, std::string>> minted_;  ///< By a token's Secret: from what, and the text.
};

/// A server that tells the oracles what an operator asks of it.
class Tap final : public Server {
 public:
  Tap(Server& server, Oracles& oracles) : server_(server), oracles_(oracles) {}
  [[nodiscard]] bool listening() const override { return server_.listening(); }
  net::HttpResponse serve(const net::HttpRequest& request) override {
    oracles_.request(request, false, identity_of(request));
    return server_.serve(request);
  }
  [[nodiscard]] bool is_stream(const net::HttpRequest& request) const override { return server_.is_stream(request); }
  std::expected<StreamId, net::HttpResponse> open(const net::HttpRequest& request, StreamSink sink) override {
    return server_.open(request, std::move(sink));
  }
  void close(StreamId id) override { server_.close(id); }
  [[nodiscard]] net::HttpResponse fault_reply(int status) const override { return server_.fault_reply(status); }

 private:
  static std::string identity_of(const net::HttpRequest& request);

  Server& server_;
  Oracles& oracles_;
};

/// Gives every line to the oracles; keeps the last ones in their notes.
class OracleLogger final : public core::Logger {
 public:
  OracleLogger(Oracles& oracles, const core::Clock& clock, std::string who, bool print)
      : oracles_(oracles), clock_(clock), who_(std::move(who)), print_(print) {}
  void log(core::Level level, std::string_view message, std::vector<core::Field> fields) override;

 private:
  Oracles& oracles_;
  const core::Clock& clock_;
  std::string who_;
  bool print_;
};

/// The policy of the chart: Kubernetes' own cleaning may delete a worker only when the operator released it, or it cannot run
/// jobs.
Admission worker_policy();
/// The chart's policy against preemption of workers that run jobs.
Admission busy_policy();
/// The chart's other policies: what drains need stays, while a Controller that says Drain, or a RestApi, is being deleted.
Admission cluster_policy(const KubeApi& api);

}  // namespace sim
