// The world of one history: a simulated Kubernetes, Slurm in its pods, the real operator in one or two processes, users, admins
// and accidents, all from one seed and on virtual time.
//
//   sim::World world({.seed = 7});
//   sim::History history(world);
//   std::vector<std::string> wrong = history.run();     // empty: no oracle found a violation
//
// For single parts see the unit tests of their rooms; tests/conformance checks the simulated servers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kube/app/manager.hpp"
#include "kube/client/client.hpp"
#include "kube/client/credentials.hpp"
#include "operator/operator.hpp"
#include "sim/base/faults.hpp"
#include "sim/base/loop.hpp"
#include "sim/base/transport.hpp"
#include "sim/kube/sim_kube.hpp"
#include "sim/oracles/oracles.hpp"
#include "sim/oracles/tap.hpp"
#include "sim/site/slurm_site.hpp"

namespace sim {

struct WorldOptions {
  std::uint64_t seed = 1;
  int operators = 1;  ///< Two or more elect a leader.
  int kube_nodes = 4;
  std::string slurm_release = "26.05.5";
  bool print = false;                     ///< Writes the operators' logs to standard output.
  std::vector<std::string> namespaces{};  ///< The namespaces in which operators act; empty: all.
  /// Pass every plan to the oracles. Turn this off to measure the operators without the oracles' work and memory.
  bool show_plans = true;
  ApiOptions api{};
  ControllerOptions controllers{};
};

/// The rates of the faults of requests to slurmrestd, beyond those of any request.
struct SlurmRates {
  double unchanged = 0;  ///< slurmctld misses changes: see SlurmRest::miss_changes.
  double refused = 0, slow = 0, empty = 0, bare = 0, other = 0, partial = 0, error = 0, lost = 0;
  core::Duration latency{0};  ///< For each answer without a fault.
};

/// One process of the operator.
class OperatorProcess;

class World {
 public:
  explicit World(WorldOptions options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  SimLoop& loop() { return loop_; }
  SeededRandom& random() { return random_; }
  SimKube& kube() { return *kube_; }
  KubeApi& api() { return kube_->api(); }
  SlurmSite& site() { return site_; }
  Oracles& oracles() { return *oracles_; }
  /// The faults of the operators' requests to the API server and to slurmrestd. All their writes are numbered in one sequence.
  Faults& faults() { return faults_; }
  SlurmRates slurm_rates;
  [[nodiscard]] const WorldOptions& options() const { return options_; }

  void start_operators();
  /// Kills the process now, and starts it again after `delay`.
  void crash_operator(int which, core::Duration delay);
  void pause_operator(int which, core::Duration length);
  void jump_clock(int which, core::Duration by);
  /// Nothing answers at the API server's address for this long.
  void stop_api(core::Duration length);
  /// Returns the operator that holds the Lease; the first one without an election.
  [[nodiscard]] int leader() const;
  /// Undoes the jumps of all clocks.
  void correct_clocks();
  [[nodiscard]] int operator_count() const { return static_cast<int>(operators_.size()); }
  /// Null while the process is dead.
  [[nodiscard]] OperatorProcess* operator_process(int which) { return operators_[static_cast<std::size_t>(which)].get(); }

  // --- Actions of users ---
  void apply(const core::Json& object, const char* ns = kNamespace);
  /// Starts the operators and creates a Controller, a RestApi and the NodeSet "cpu". Does not wait for them.
  void found_cluster(int workers, const core::Json& controller = core::Json::object());
  void remove(const kube::Resource& resource, const std::string& name, const std::string& propagation = "Background");
  /// Deletes the object and removes its finalizers, so that nobody can clean up.
  void tear_away(const kube::Resource& resource, const std::string& name);
  void evict(const std::string& pod);
  void merge(const kube::Resource& resource, const std::string& name, const core::Json& patch);
  [[nodiscard]] const core::Json* find(const kube::Resource& resource, const std::string& name) const;
  [[nodiscard]] std::vector<std::string> names(const kube::Resource& resource) const;
  /// Returns the names of worker pods that are not terminating.
  [[nodiscard]] std::vector<std::string> workers() const;
  /// Returns the Slurm of the Controller "demo"; null while no slurmctld answers.
  [[nodiscard]] SimSlurm* slurm() const;

  /// Runs until the declared state has been reached for a few seconds. Otherwise returns the last reasons.
  std::vector<std::string> settle(core::Duration limit);

  static constexpr const char* kNamespace = "default";
  static constexpr const char* kCluster = "demo";
  static constexpr const char* kLogin = "login";  ///< The name of the LoginSet.
  static constexpr const char* kAccounting = "records";
  static constexpr const char* kOtherNamespace = "other";

 private:
  void start_operator(int which);
  SlurmFault slurm_fault(const net::HttpRequest& request, const OperatorProcess& process);

  friend class OperatorProcess;
  WorldOptions options_;
  SimLoop loop_;
  SeededRandom random_;
  SlurmSite site_;
  std::unique_ptr<SimKube> kube_;
  std::unique_ptr<Oracles> oracles_;
  std::unique_ptr<Tap> tap_;
  Faults faults_;
  std::vector<std::unique_ptr<OperatorProcess>> operators_;
};

class OperatorProcess {
 public:
  OperatorProcess(World& world, int which);
  [[nodiscard]] kube::Manager& manager() { return manager_; }
  [[nodiscard]] op::Operator& op() { return operator_; }
  [[nodiscard]] SimHost& host() { return host_; }
  [[nodiscard]] int which() const { return which_; }
  /// The name in the Lease; "" without an election.
  [[nodiscard]] const std::string& identity() const { return identity_; }

 private:
  [[nodiscard]] kube::ClientOptions client_options() const;
  [[nodiscard]] kube::ManagerOptions manager_options(World& world) const;

  int which_;
  SimHost host_;
  SeededRandom random_;
  OracleLogger log_;
  Transport transport_;
  std::string identity_;
  kube::StaticCredentials credentials_;
  kube::Client client_;
  kube::Manager manager_;
  op::Operator operator_;
};

// --- Objects as users write them ---
core::Json controller_json(const std::string& extra_conf = "");
core::Json restapi_json();
core::Json nodeset_json(const std::string& name, int replicas);
core::Json loginset_json(int replicas);
/// Its slurmdbd is outside of Kubernetes.
core::Json accounting_json();
/// Signed by the key of a Secret.
core::Json token_json(const std::string& name, const std::string& secret, const std::string& key);
/// `data` maps keys to text.
core::Json config_map_json(const std::string& name, const std::map<std::string, std::string>& data);
core::Json secret_json(const std::string& name, const std::map<std::string, std::string>& data);

}  // namespace sim
