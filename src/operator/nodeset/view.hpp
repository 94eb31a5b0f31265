// A View holds the facts and the goal of a pass over a NodeSet, and derives values from both. It does not change while the pass
// is planned. Private to this folder.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "operator/common/slinky.hpp"
#include "operator/nodeset/observed.hpp"
#include "plan/plan.hpp"
#include "slinky/status.hpp"

namespace op::nodeset {

/// The goal of a pass.
enum class Goal {
  kServe,     ///< Run spec.replicas workers, or one on each matching Kubernetes node.
  kDrainAll,  ///< Delete all workers, each after its jobs.
  kEndAll,    ///< Delete all workers at once, because the user deleted the cluster.
  kHold,      ///< Change no worker, because the wanted state is unknown or impossible.
};

struct Aim {
  Goal goal = Goal::kServe;
  int desired = 0;                ///< Number of wanted workers.
  std::vector<Problem> problems;  ///< Why the goal is not kServe.
};

/// The owner of the name that a worker would have in Slurm. In Slurm, a node and a NodeSet cannot have the same name. If Slurm
/// already has a node with the name of a NodeSet, the node keeps the name and the NodeSet waits.
enum class NameOwner {
  kUs,
  kOtherNodeSet,  ///< The name is that of another NodeSet, or of this NodeSet itself.
  kOtherWorker,   ///< A worker of another NodeSet has the name or will have it.
                  ///< Two slurmds of one name would take each other's jobs.
  kOtherNode,     ///< Slurm has a node of that name that this NodeSet did not create, for example a host of the site.
  kUnknown,       ///< Slurm has not answered yet, and the node might be somebody else's.
};

/// A wait of the pass: its reason, a message, and the time that is left.
struct Wait {
  std::string_view reason;
  std::string note;
  core::Duration left;
  [[nodiscard]] bool over() const { return left.count() <= 0; }
};

class View {
 public:
  /// Keeps a reference to `observed`.
  View(const Observed& observed, const Aim& aim);

  const Observed& in;
  const Goal goal;
  const int desired;  ///< Number of wanted workers.

  [[nodiscard]] slurm::ClusterKey cluster() const { return in.cluster(); }
  /// Returns "NodeSet default/cpu".
  [[nodiscard]] std::string self_text() const;
  /// True if deletions are stopped or Slurm's answers are in doubt (Observed::doubt). If deletions are stopped, nothing may be
  /// deleted. If the answers are in doubt, only deletions that do not depend on the answers are allowed.
  [[nodiscard]] bool stops() const { return in.stopped || !in.doubt.empty(); }
  /// True if the spec has changed since the status was written, so that steps that failed before might succeed now.
  [[nodiscard]] bool spec_changed() const { return in.meta().generation != in.nodeset.status.observed_generation; }

  /// True if Slurm has answered completely. This suffices for the status, and for acts that are checked when they are sent.
  [[nodiscard]] bool slurm_known() const { return slurm_known_; }
  /// True if Slurm's answer is so recent that a node or job that is missing in the answer does not exist. If slurm_fresh() is
  /// false and something is to be done, plan again after kFreshAgain, because a later answer with the same content does not
  /// wake the NodeSet.
  [[nodiscard]] bool slurm_fresh() const { return slurm_fresh_; }
  /// While Slurm does not answer, returns how much longer the status shows Slurm's last answer. The status shows it for a while
  /// because a restart of slurmctld does not change the workers. Zero or less: the answer is too old, or there is none. Empty:
  /// Slurm answers.
  [[nodiscard]] std::optional<core::Duration> slurm_shown_for() const;
  [[nodiscard]] bool slurm_shows() const;
  /// Returns Slurm's record of the node. Null: there is none, or it is unknown.
  [[nodiscard]] const slurm::Node* known_record(std::string_view node) const;
  [[nodiscard]] slurm::Work work_on(std::string_view node) const;

  /// True with scalingMode DaemonSet.
  [[nodiscard]] bool by_host() const { return in.by_host(); }
  /// True if the place fits the present scalingMode.
  [[nodiscard]] bool of_mode(const SlotKey& place) const { return place.numbered() != by_host(); }

  /// True if the Slurm node belongs to one of our pods that has a place.
  [[nodiscard]] bool has_worker(std::string_view node) const { return worker_nodes_.contains(node); }
  /// True if the Slurm node belongs, or might belong, to a pod that is to be adopted or that the operator does not manage.
  [[nodiscard]] bool is_of_other_pod(std::string_view node) const;
  /// Returns the part of the workers' Slurm node names that precedes the ordinal.
  [[nodiscard]] std::string node_prefix() const;
  [[nodiscard]] std::string pod_name(const SlotKey& place) const;
  /// Returns why a worker with this ordinal cannot have its pod or Slurm name, and what users should do. "": no problem, or
  /// workers have no ordinals.
  [[nodiscard]] std::string name_problem(int ordinal) const;
  /// Returns the name in Slurm of the worker of a place. Not valid with host networking.
  [[nodiscard]] std::string node_name(const SlotKey& place) const;
  [[nodiscard]] NameOwner owner_of_name(const SlotKey& place) const;
  /// True if the record's comment or feature shows that a worker of this NodeSet, or of an earlier NodeSet of the same name,
  /// made it.
  [[nodiscard]] bool is_own_record(const slurm::Node& record) const;
  /// Returns the place whose worker has this name in Slurm. nullopt: none of our places.
  [[nodiscard]] std::optional<SlotKey> place_of(std::string_view node) const;
  /// Returns the other NodeSet whose worker has or will have the name. Null: there is none.
  [[nodiscard]] const Rival* rival_of(std::string_view node) const;
  /// Returns the hash of a revision's extraConf and limits. Null: unknown.
  [[nodiscard]] const std::string* conf_hash(std::string_view revision) const;

  /// Returns the outcome of a step that failed. Null: the step has not failed.
  [[nodiscard]] const plan::Outcome* failure(const plan::StepId& id) const;
  /// Returns how long it takes until a failed step may be tried again. Not positive: it may be tried now.
  [[nodiscard]] core::Duration retry_in(const plan::StepId& id) const;
  /// Returns a wait for something that might never happen. The wait is over once events have reported `note` for `limit`
  /// without interruption.
  [[nodiscard]] Wait wait_at_most(core::Duration limit, std::string_view reason, std::string note) const;
  /// Returns a step that reports an event about the NodeSet.
  [[nodiscard]] plan::Step event_step(std::string_view type, std::string_view reason, std::string_view action,
                                      std::string note) const;

 private:
  bool slurm_known_ = false;
  bool slurm_fresh_ = false;

  std::unordered_set<std::string_view> worker_nodes_;
  std::unordered_map<std::string_view, std::string_view> hosts_by_node_;  ///< Maps Slurm nodes to Kubernetes nodes.
  std::map<std::string, std::string, std::less<>> conf_hashes_;           ///< Maps revisions to hashes: see conf_hash().
};

/// Returns how long to wait after `outcome.count` failures of a step.
core::Duration backoff(const plan::Outcome& outcome);

}  // namespace op::nodeset
