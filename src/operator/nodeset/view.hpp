// What a pass over a NodeSet goes by: what was observed, what the pass is for, and what follows from these. It does not change
// while the pass is planned. Private to this folder.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "cluster/status.hpp"
#include "operator/nodeset/observed.hpp"
#include "plan/plan.hpp"

namespace op::nodeset {

/// What the pass is for.
enum class Goal {
  kServe,     ///< Run spec.replicas workers, or one on each Kubernetes node that matches.
  kDrainAll,  ///< No workers; none is taken from its jobs.
  kEndAll,    ///< No workers; the user ended the cluster, so none is waited for.
  kHold,      ///< Change no worker: what is wanted cannot be told, or cannot be done.
};

struct Aim {
  Goal goal = Goal::kServe;
  int desired = 0;                ///< How many workers there are to be.
  std::vector<Problem> problems;  ///< Why it is not spec.replicas.
};

/// Whose in Slurm the name is that a worker would have. Slurm lets no node in that has a NodeSet's name; one that it has keeps
/// it, and the NodeSet waits.
enum class NameOwner {
  kUs,
  kOtherNodeSet,  ///< Another NodeSet is called so.
  kOtherWorker,   ///< A worker of another NodeSet has it, or is to have it: two slurmd of one name take each other's jobs.
  kOtherNode,     ///< Slurm has a node of that name which no NodeSet of this name made: a host of the site, say.
  kUnknown,       ///< Slurm has not answered yet whether it has the node, and it may be another's.
};

/// How long the pass still waits for something, and what it says about that.
struct Wait {
  std::string_view reason;
  std::string note;
  core::Duration left;
  [[nodiscard]] bool over() const { return left.count() <= 0; }
};

class View {
 public:
  /// `observed` must stay.
  View(const Observed& observed, const Aim& aim);

  const Observed& in;
  const Goal goal;
  const int desired;  ///< How many workers there are to be.

  [[nodiscard]] slurm::ClusterKey cluster() const { return in.cluster(); }
  /// "NodeSet default/cpu".
  [[nodiscard]] std::string self_text() const;
  /// Nothing is deleted now but what has nothing to do with Slurm's word, or nothing at all.
  [[nodiscard]] bool stops() const { return in.stopped || !in.doubt.empty(); }
  /// The spec has changed since the status was last written: what failed before may work now.
  [[nodiscard]] bool spec_changed() const { return in.meta().generation != in.nodeset.status.observed_generation; }

  /// Slurm answered completely once; good enough for showing, and for acts that are checked live.
  [[nodiscard]] bool slurm_known() const { return slurm_known_; }
  /// The same, and lately enough to conclude from what is missing. Where it is not, and there is something to do, the pass is
  /// to be planned again (kFreshAgain): a later answer that says the same wakes nobody.
  [[nodiscard]] bool slurm_fresh() const { return slurm_fresh_; }
  /// How long what Slurm last said may still be shown: a restart of slurmctld does not change what workers are. Not positive:
  /// it is too old, or there is none; empty: it is of now.
  [[nodiscard]] std::optional<core::Duration> slurm_shown_for() const;
  [[nodiscard]] bool slurm_shows() const;
  /// What Slurm last said of the node; null: it has none, or is not known.
  [[nodiscard]] const slurm::Node* known_record(std::string_view node) const;
  [[nodiscard]] slurm::Work work_on(std::string_view node) const;

  /// Workers are bound to Kubernetes nodes.
  [[nodiscard]] bool by_host() const { return in.by_host(); }
  /// The worker is of the NodeSet's present scalingMode.
  [[nodiscard]] bool of_mode(const SlotKey& place) const { return place.numbered() != by_host(); }

  /// It is the Slurm node of one of our pods.
  [[nodiscard]] bool has_worker(std::string_view node) const { return worker_nodes_.contains(node); }
  /// A pod is behind the Slurm node, or may be, that is to be adopted or is left to somebody on purpose.
  [[nodiscard]] bool is_of_other_pod(std::string_view node) const;
  /// What precedes the number in the Slurm nodes' names of workers.
  [[nodiscard]] std::string node_prefix() const;
  [[nodiscard]] std::string pod_name(const SlotKey& place) const;
  /// Why a worker with this ordinal cannot have its names, and what to do; empty when it can, or there is no such worker.
  [[nodiscard]] std::string name_problem(int ordinal) const;
  /// What Slurm calls the worker of a place; not with host networking.
  [[nodiscard]] std::string node_name(const SlotKey& place) const;
  [[nodiscard]] NameOwner owner_of_name(const SlotKey& place) const;
  /// By its comment, or before it has one by its feature, a worker of this NodeSet registered it.
  [[nodiscard]] bool is_own_record(const slurm::Node& record) const;
  /// The place whose worker has that name in Slurm; empty: none of ours.
  [[nodiscard]] std::optional<SlotKey> place_of(std::string_view node) const;
  /// The NodeSet whose worker has the name, or is to have it; null: none.
  [[nodiscard]] const Rival* rival_of(std::string_view node) const;
  /// Of the extraConf and the limits of a revision; null: that is not known.
  [[nodiscard]] const std::string* conf_hash(std::string_view revision) const;

  /// The failed outcome of a step, or null.
  [[nodiscard]] const plan::Outcome* failure(const plan::StepId& id) const;
  /// How long until a step that failed may be tried again; not positive: now.
  [[nodiscard]] core::Duration retry_in(const plan::StepId& id) const;
  /// For what may never come: `limit`, less the time for which `note` has been told without a break.
  [[nodiscard]] Wait wait_at_most(core::Duration limit, std::string_view reason, std::string note) const;
  /// A step that reports an event about the NodeSet.
  [[nodiscard]] plan::Step event_step(std::string_view type, std::string_view reason, std::string_view action,
                                      std::string note) const;

 private:
  bool slurm_known_ = false;
  bool slurm_fresh_ = false;

  std::unordered_set<std::string_view> worker_nodes_;
  std::unordered_map<std::string_view, std::string_view> hosts_by_node_;  ///< By Slurm node.
  std::map<std::string, std::string, std::less<>> conf_hashes_;           ///< By revision.
};

/// How long to wait for the n-th try after n failures of this kind.
core::Duration backoff(const plan::Outcome& outcome);

}  // namespace op::nodeset
