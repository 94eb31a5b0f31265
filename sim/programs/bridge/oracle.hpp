// The oracle of the bridge. It checks these rules against the simulated Slurm and Kubernetes, not against the bridge's reports:
//
// 1. The bridge neither changes nor ends jobs of others, and does not undo their drains.
// 2. A pod is placed only for a running job of its own that holds the node, and not beside a pod whose job has ended. A placed
//    pod does not outlive its job for longer than the limit.
// 3. No job waits or runs without a pod for longer than the limit, and no pod has two jobs.
// 4. Either all pods of a job are placed, each on its own node, or none. Another state does not last longer than the limit.
// 5. A pod whose job Slurm refused is not ended.
// 6. A pod whose job slurmctld lost with its state is not ended, because nobody knows whether the pod may still use its node.
// 7. The bridge creates no node that Slurm has. It changes or deletes only nodes that it created, deletes none that a job or
//    somebody else holds, and never removes its own mark.
// 8. Slurm has the labelled nodes, and no other nodes of the bridge. A Kubernetes node has the taint if Slurm has the node. The
//    bridge drains a node if and only if the node takes no pods. No deviation from these states lasts longer than the limit.
// 9. A node with a slurmd lists the job of each pod that the bridge runs there, from before the pod is placed until it has
//    ended, because the prolog of the node reads the list to hold native jobs back.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/loop.hpp"
#include "net/http.hpp"
#include "sim/kube/api.hpp"
#include "sim/oracles/oracles.hpp"
#include "sim/slurm/sim_slurm.hpp"

namespace sim {

class BridgeOracle final : public Oracle {
 public:
  /// `installation` is the UID of the Kubernetes cluster. Slurm's nodes have the names of the Kubernetes nodes.
  BridgeOracle(Oracles& all, core::Loop& loop, KubeApi& api, SimSlurm& slurm, std::string installation);

  /// Checks a request of the bridge to slurmrestd before it is sent.
  void request(const net::HttpRequest& request);
  /// Records that somebody else removes the gates of this pod, so that the pod no longer concerns the bridge.
  void freed(const std::string& uid) { freed_.insert(uid); }
  /// Records that slurmctld is about to lose its state.
  void state_lost();
  /// Returns the pods whose jobs slurmctld has lost. Only an administrator ends them.
  [[nodiscard]] std::vector<std::string> stranded() const;
  /// Checks the whole state. Call it about every second. Time counts against the limits only while `fair` is true: no fault is
  /// active, and nothing else prevents the bridge from working.
  void look(bool fair);

  [[nodiscard]] std::vector<std::string> unmet() const override;

  /// A problem may last for this long. Only the time with `fair` counts: see look().
  static constexpr core::Duration kLimit{180000};
  /// A pod may still be placed this long after the end of its job, because the bridge possibly read the job before its end.
  static constexpr core::Duration kNews{20000};

 private:
  /// Problems that must not last. Maps an object and the kind of problem, such as "gate UID", to a description of the problem.
  using Wrong = std::map<std::string, std::string>;

  [[nodiscard]] bool is_ours(const SimJob& job) const;
  [[nodiscard]] static std::set<std::string> pods_of(const SimJob& job);
  [[nodiscard]] bool is_ours(const SimNode& node) const;
  [[nodiscard]] static bool is_for(const SimJob& job, const core::Json& pod);
  [[nodiscard]] Wrong wrong() const;
  [[nodiscard]] const SimJob* job_of(const core::Json& pod) const;
  [[nodiscard]] bool is_stranded(const core::Json& pod) const;
  /// Returns a pod on the node whose job slurmctld has lost; "" if there is none.
  [[nodiscard]] std::string stranded_on(const std::string& node) const;
  void wrong_pods(Wrong& out) const;
  void wrong_jobs(Wrong& out) const;
  void wrong_nodes(Wrong& out) const;
  /// Returns what is wrong with the Kubernetes node `host` or the Slurm node `node`; "" if nothing is. Either may be null.
  [[nodiscard]] std::string wrong_with(const core::Json* host, const SimNode* node) const;
  [[nodiscard]] bool names_unknown_partition(const core::Json& host) const;
  void changed(const core::Json& before, const core::Json& after);
  void placed(const core::Json& pod);
  void check_job(const std::string& id, const std::string& what);
  void check_node(const SimNode& node, const SimNodeUpdate& update, const std::string& user);
  /// Reports whether the prolog of the node would hold native jobs back for a pod of this job.
  [[nodiscard]] bool holds_back(const std::string& node, std::int64_t job) const;
  void check_held() const;
  void check_features(const SimNode& node, const SimNodeUpdate& update);
  void check_creation(const std::string& line);
  void check_deletion(const SimNode& node, const std::vector<const SimJob*>& jobs, const std::string& user);
  void violation(const std::string& text) { all_.violation(text); }

  Oracles& all_;
  core::Loop& loop_;
  KubeApi& api_;
  SimSlurm& slurm_;
  std::string installation_;
  std::set<std::string> freed_;  ///< The uids of pods whose gates somebody else has removed.
  // The jobs that slurmctld has lost with its state, each as "NUMBER.SUBMITTED".
  std::set<std::string> lost_;
  std::set<std::string> lost_alive_;             ///< The jobs in lost_ that had not ended.
  std::map<std::string, core::Duration> lasts_;  ///< How long each problem has lasted while `fair`.
  std::optional<core::MonoTime> looked_;
};

}  // namespace sim
