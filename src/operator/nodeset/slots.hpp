// The places of a NodeSet. For each place, a Slot has the worker's pod, Slurm node, Kubernetes node, jobs and prospect, and the
// evidence that allows the deletion of the worker. conclude() computes the slots from the observed facts. fates.cpp decides
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
  /// The topology that the node's labels give. Only if the Controller has spec.topology. "": a label is missing.
  std::string place{};
  std::string lacks{};                            ///< The label whose absence makes `place` empty. "": none.
  std::set<std::string, std::less<>> features{};  ///< Features, with prefix, for the Slurm node of a worker on this node.
  friend bool operator==(const KubeNode&, const KubeNode&) = default;
};

/// Tells whether a worker fits a Kubernetes node.
struct Fit {
  bool starts = false;  ///< A new worker is allowed on the node.
  bool stays = false;   ///< An existing worker is allowed to stay. A taint NoSchedule only prevents new workers.
  [[nodiscard]] bool any() const { return starts || stays; }
  friend bool operator==(const Fit&, const Fit&) = default;
};

/// A Kubernetes node as a place for a worker, with scalingMode DaemonSet.
struct Host {
  Fit fit;
  std::string slurm_node;  ///< The name of the worker in Slurm, and the worker's hostname.
  core::WallTime created;
  /// Another Kubernetes node that also gives its worker the name `slurm_node` and takes precedence. "": there is none.
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
  kServes,     ///< The worker serves, or is expected to serve soon.
  kLost,       ///< Slurm has no node for the worker, whose slurmd will not register (again). The worker can only be replaced.
  kUnpinned,   ///< The worker waits for a Kubernetes node to which it is no longer pinned. It can only be replaced.
  kOutdated,   ///< The worker has an earlier template and got stuck before its slurmd ever ran. It can only be replaced.
  kNoRoom,     ///< The worker does not register because slurmctld already has MaxNodeCount nodes.
  kElsewhere,  ///< The worker might have registered under another name, which is Slot::suspect.
  kStateLost,  ///< Slurm has lost the worker's node and many other nodes.
};

/// The time after which a fact might change without an event, and the cause of that change. The plan must ask for another pass
/// after that time.
struct Change {
  core::Duration in;
  std::string_view why;
};

/// Evidence about a worker's pod, derived from evidence about the worker's Slurm node.
template <class Kind>
class WorkerEvidence final : public kube::PodEvidence {
 public:
  WorkerEvidence(const plan::Observing& observing, const kube::PodRecord& pod, Kind node)
      : PodEvidence(observing, pod, node.kind(), node.detail(), node.good_until()), node_(std::move(node)) {}
  [[nodiscard]] const Kind& node() const { return node_; }

 private:
  Kind node_;
};

/// The evidence about a worker, by kind. Each kind except `timed_out` allows the deletion of the worker. The plan chooses one
/// kind.
struct SlotEvidence {
  std::optional<kube::NeverStarted> never_started;
  std::optional<kube::Ended> ended;
  std::optional<OwnerEnds> owner_ends;
  std::optional<WorkerEvidence<slurm::Drained>> drained;
  std::optional<WorkerEvidence<slurm::NeverRegistered>> never_registered;
  std::optional<WorkerEvidence<slurm::Forgotten>> forgotten;
  std::optional<WorkerEvidence<slurm::Silent>> silent;
  /// Evidence that the drain has reached the timeout of spec.drainPolicy. This evidence allows the plan to end the worker's
  /// jobs. It does not allow the deletion of the pod, because jobs still run on the worker.
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
  /// Another Slurm node that might belong to this worker and has jobs or accepts jobs. Set only if the worker has no record, or
  /// if the slurmd of the other node started later than the slurmd in the worker's record. "": there is no such node.
  std::string suspect;
  bool stamped = false;      ///< Slurm has, or once had, the node of this pod.
  bool user_cordon = false;  ///< The pod has the annotation pod-cordon or pod-cordon-requested.
  bool released = false;     ///< The pod has the annotation pod-release: deletion is allowed even if jobs run.
  /// The pod has the annotation deletion-evidence: the Slurm node was drained, and its record was deleted or about to be
  /// deleted.
  bool cleared_for_deletion = false;
  /// The worker had registered before it was cleared for deletion. Its slurmd does not register again on its own.
  bool deregistered = false;
  /// Set for a ready worker that was registered and whose node Slurm no longer has: since when the node has been missing,
  /// according to a condition of the pod.
  std::optional<core::WallTime> missing_since;
  /// A user has confirmed that the node is lost. The operator can then replace the worker although Slurm has lost many nodes.
  bool loss_confirmed = false;
  /// How long the operator has kept the node drained for the deletion of the worker. nullopt: the node is not drained for that
  /// deletion.
  std::optional<core::Duration> drained_for;
  /// While Slurm does not have the worker's node: since when the worker's slurmd might register at any moment. nullopt: the
  /// slurmd cannot register.
  std::optional<core::MonoTime> may_register_since;
  /// The time until the worker must have registered (again), counted while its pod is ready. Zero or less: the registration is
  /// overdue.
  core::Duration registration_left{0};
  Prospect prospect = Prospect::kServes;
  std::optional<Change> change;  ///< When and why `prospect` might change.
  SlotEvidence evidence;

  [[nodiscard]] bool ready() const { return life == Life::kLive && pod->ready(); }
  [[nodiscard]] bool drained_by_us() const;
  [[nodiscard]] bool has_flag(std::string_view flag) const { return record != nullptr && record->state.has(flag); }
  /// True if the node is ALLOCATED, MIXED or COMPLETING, or if a job holds the node.
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

/// True if somebody other than the operator has drained the node or set it failing, or if an administrator has set it down.
[[nodiscard]] bool held_by_others(const slurm::Node& node);
[[nodiscard]] bool held_by_others(const Slot& slot);

/// When to plan again if something is to be done, but Slurm's last answer is too old to act on.
inline constexpr Change kFreshAgain{core::Duration{1000}, "Slurm's last answer is too old to act on"};

/// Returns the workers of a NodeSet, sorted by place. Requires that Observed::hash and all members that `observe` copies are
/// set.
[[nodiscard]] std::vector<Slot> read_slots(const Observed& observed, const plan::Observing& observing);
/// Returns evidence, for pods that are gone, that their slurmds have ended. The key is the Slurm node. Uses the API server's
/// answers in Observed::live.
[[nodiscard]] std::map<std::string, slurm::SlurmdEnded, std::less<>> read_ended(const Observed& observed,
                                                                                const plan::Observing& observing);
/// Returns evidence that a Slurm record belongs to no worker, because the Kubernetes node of its worker is gone. The key is the
/// Slurm node. Uses the API server's answers in Observed::live.
[[nodiscard]] std::map<std::string, slurm::LeftBehind, std::less<>> read_left_behind(const Observed& observed,
                                                                                     const plan::Observing& observing);

}  // namespace op::nodeset
