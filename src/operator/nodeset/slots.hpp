// The places of a NodeSet. A place has a worker's pod, its Slurm node, Kubernetes node and jobs, the prospect of the worker,
// and the evidence that the worker may be deleted. conclude() fills the places in from what was observed. fates.cpp decides
// what happens to a worker.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kube/acts.hpp"
#include "operator/common/evidence.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/workers.hpp"
#include "slurm/evidence.hpp"

namespace op::nodeset {

struct Observed;

/// The facts about a Kubernetes node that matter to its worker.
struct KubeNode {
  bool unschedulable = false;
  std::string cordon_reason;  ///< The annotation nodeset.slinky.slurm.net/node-cordon-reason.
  bool ready = true;          ///< The kubelet reports Ready and has reported recently.
  std::string goes{};         ///< Key of a taint that announces the end of the node; "": none.
  std::string troubles{};     ///< What Options::propagated_conditions report: "(BadCPU: CPU 17 is broken)"; "": nothing.
  bool known = true;          ///< False: the node cannot be read, and the other values are assumed.
  std::string topology{};     ///< The annotation topology.slinky.slurm.net/spec.
  /// The topology according to the labels, if spec.topology of the Controller is set. "": a label is missing.
  std::string place{};
  std::string lacks{};                            ///< The missing label, if `place` lacks one. "": no label is missing.
  std::set<std::string, std::less<>> features{};  ///< Features of the Slurm nodes of workers there, with their prefix.
  friend bool operator==(const KubeNode&, const KubeNode&) = default;
};

/// Tells whether a worker fits a Kubernetes node.
struct Fit {
  bool starts = false;  ///< A new worker may be created on the node.
  bool stays = false;   ///< An existing worker may stay on the node. A taint NoSchedule only prevents new workers.
  [[nodiscard]] bool any() const { return starts || stays; }
  friend bool operator==(const Fit&, const Fit&) = default;
};

/// A Kubernetes node as a place for a worker, with scalingMode DaemonSet.
struct Host {
  Fit fit;
  std::string slurm_node;  ///< The worker's name in Slurm and its hostname.
  core::WallTime created;
  /// The Kubernetes node that gives its worker the same name and takes precedence. "": none.
  std::string twin{};
  bool wanted = false;  ///< The Kubernetes node should have a worker.
};
using Hosts = std::map<std::string, Host, std::less<>>;

enum class Life {
  kLive,
  kEnded,        ///< Phase Failed or Succeeded.
  kTerminating,  ///< Deleted, but not gone.
};

/// Identifies a place: by an ordinal with scalingMode StatefulSet, or by a Kubernetes node with DaemonSet. A NodeSet has both
/// kinds while it changes its mode.
struct SlotKey {
  int ordinal = -1;         ///< The ordinal. -1: the place has none.
  std::string kube_node{};  ///< The Kubernetes node. "": the place has none.

  [[nodiscard]] bool numbered() const { return ordinal >= 0; }
  auto operator<=>(const SlotKey&) const = default;
};

/// What can be expected of a worker.
enum class Prospect {
  kServes,     ///< The worker serves or will soon, as far as is known.
  kLost,       ///< Slurm has no node for it, and its slurmd will not register (again). It can only be replaced.
  kUnpinned,   ///< The worker waits for a Kubernetes node to which it is no longer pinned. It can only be replaced.
  kOutdated,   ///< The worker has an earlier template and got stuck before its slurmd ever ran. It can only be replaced.
  kNoRoom,     ///< The worker does not register because slurmctld already has MaxNodeCount nodes.
  kElsewhere,  ///< The worker may have registered under another name: Slot::suspect.
  kStateLost,  ///< Slurm has lost the worker's node and many other nodes.
};

/// The time after which a fact may change without an event, and the cause. The plan must ask for another pass at that time.
struct Change {
  core::Duration in;
  std::string_view why;
};

/// Evidence about a worker's pod that follows from evidence about its Slurm node.
template <class Kind>
class WorkerEvidence final : public kube::PodEvidence {
 public:
  WorkerEvidence(const plan::Observing& observing, const kube::PodRecord& pod, Kind node)
      : PodEvidence(observing, pod, node.kind(), node.detail(), node.good_until()), node_(std::move(node)) {}
  [[nodiscard]] const Kind& node() const { return node_; }

 private:
  Kind node_;
};

/// All evidence that would allow the deletion of a worker. The plan chooses one.
struct SlotEvidence {
  std::optional<kube::NeverStarted> never_started;
  std::optional<kube::Ended> ended;
  std::optional<OwnerEnds> owner_ends;
  std::optional<WorkerEvidence<slurm::Drained>> drained;
  std::optional<WorkerEvidence<slurm::NeverRegistered>> never_registered;
  std::optional<WorkerEvidence<slurm::Forgotten>> forgotten;
  std::optional<WorkerEvidence<slurm::Silent>> silent;
  /// Evidence for spec.drainPolicy. It does not allow the deletion of the pod: jobs still run there.
  std::optional<slurm::DrainTimedOut> timed_out;
};

struct Slot {
  SlotKey key;
  kube::PodPtr pod;
  /// The name of the Slurm node. Once Slurm has had the node, the name is written on the pod and never changes.
  std::string node;
  const slurm::Node* record = nullptr;  ///< Slurm's record; null: there is none, or Slurm has not answered.
  std::optional<KubeNode> kube_node;    ///< Empty: the pod has no Kubernetes node, or the node is gone or not known (yet).
  Life life = Life::kLive;
  slurm::Work work;
  /// Another Slurm node that may belong to this worker and has jobs or accepts jobs. Set only if the worker has no record, or
  /// if that node's slurmd started later than the slurmd of the record. "": there is none.
  std::string suspect;
  bool stamped = false;      ///< Slurm has had the node of this pod before.
  bool user_cordon = false;  ///< Annotation pod-cordon, or pod-cordon-requested.
  bool released = false;     ///< Annotation pod-release: the worker may be deleted even if it runs jobs.
  /// Annotation deletion-evidence: the node was drained, and its record was deleted or was about to be.
  bool cleared_for_deletion = false;
  /// The worker had registered before it was cleared for deletion. Its slurmd does not register again on its own.
  bool deregistered = false;
  /// Since when Slurm has not had the node of a worker that is ready and was registered, according to the condition on its pod.
  std::optional<core::WallTime> missing_since;
  /// A user has confirmed that the node is lost. The worker may then be replaced although Slurm has lost many nodes.
  bool loss_confirmed = false;
  /// How long the operator has kept the node drained for the deletion of the worker. nullopt: the node is not drained for that
  /// deletion.
  std::optional<core::Duration> drained_for;
  /// Since when the worker's slurmd may register at any moment, while Slurm does not have its node. nullopt: the slurmd cannot
  /// register.
  std::optional<core::MonoTime> may_register_since;
  /// The time until the worker must have registered (again), counted while its pod is ready. Zero or less: it is overdue.
  core::Duration registration_left{0};
  Prospect prospect = Prospect::kServes;
  std::optional<Change> change;  ///< When `prospect` may change.
  SlotEvidence evidence;

  [[nodiscard]] bool ready() const { return life == Life::kLive && pod->ready(); }
  [[nodiscard]] bool drained_by_us() const;
  [[nodiscard]] bool has_flag(std::string_view flag) const { return record != nullptr && record->state.has(flag); }
  /// True if the node is ALLOCATED, MIXED or COMPLETING, or if a job holds it.
  [[nodiscard]] bool busy() const;
  /// True if the node is IDLE, MIXED or ALLOCATED, answers, and is neither drained, failing nor powered down.
  [[nodiscard]] bool usable() const;
  /// True if the Kubernetes node is cordoned or has a taint that announces its end.
  [[nodiscard]] bool kube_cordon() const { return kube_node && (kube_node->unschedulable || !kube_node->goes.empty()); }
  /// True if the Kubernetes node is gone or not known (yet).
  [[nodiscard]] bool unplaced() const { return !pod->node_name.empty() && !kube_node; }
  /// True if the Kubernetes node is gone or not known (yet), or if its kubelet has not reported recently.
  [[nodiscard]] bool host_lost() const { return !pod->node_name.empty() && (!kube_node || !kube_node->ready); }
};

/// True if somebody else than the operator has drained the node or set it failing, or an administrator has set it down.
[[nodiscard]] bool held_by_others(const slurm::Node& node);
[[nodiscard]] bool held_by_others(const Slot& slot);

/// When to plan again if there is something to do, but Slurm's answer is too old to act on.
inline constexpr Change kFreshAgain{core::Duration{1000}, "what Slurm last said is too old to act on"};

/// Returns the workers of a NodeSet, sorted by place. Requires `hash` and everything that `observe` copies.
[[nodiscard]] std::vector<Slot> read_slots(const Observed& observed, const plan::Observing& observing);
/// Returns, by Slurm node, evidence that the slurmds of pods that are gone have ended. Uses the answers in `live`.
[[nodiscard]] std::map<std::string, slurm::SlurmdEnded, std::less<>> read_ended(const Observed& observed,
                                                                                const plan::Observing& observing);
/// Returns, by Slurm node, evidence that records belong to no worker because the Kubernetes nodes of their workers are gone.
/// Uses the answers in `live`.
[[nodiscard]] std::map<std::string, slurm::LeftBehind, std::less<>> read_left_behind(const Observed& observed,
                                                                                     const plan::Observing& observing);

}  // namespace op::nodeset
