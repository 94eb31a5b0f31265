// The places of a NodeSet and what is in each: the worker's pod, its Slurm node, its Kubernetes node, its work, what can be
// expected of it, and the evidence that it may be deleted. conclude() fills them in from what was observed. What happens to a
// worker is decided in fates.cpp.
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

/// What a worker's Kubernetes node means for it.
struct KubeNode {
  bool unschedulable = false;
  std::string cordon_reason;  ///< Its annotation nodeset.slinky.slurm.net/node-cordon-reason.
  bool ready = true;          ///< Its kubelet reports Ready and was heard recently.
  std::string goes{};         ///< Key of a taint that announces the end of the node; "": none.
  std::string troubles{};     ///< What Options::propagated_conditions report: "(BadCPU: CPU 17 is broken)"; "": nothing.
  bool known = true;          ///< False: the node cannot be read, and these values are assumed.
  std::string topology{};     ///< Its annotation topology.slinky.slurm.net/spec.
  std::string place{};        ///< Its topology from its labels, if the Controller asks for that; "": a label is missing.
  std::string lacks{};        ///< The missing label; "": none, or the Controller does not ask for places.
  std::set<std::string, std::less<>> features{};  ///< Features for its workers' Slurm nodes, with their prefix.
  friend bool operator==(const KubeNode&, const KubeNode&) = default;
};

/// Whether a worker fits a Kubernetes node.
struct Fit {
  bool starts = false;  ///< A new worker is created there.
  bool stays = false;   ///< An existing worker stays: the taint NoSchedule only keeps new ones away.
  [[nodiscard]] bool any() const { return starts || stays; }
  friend bool operator==(const Fit&, const Fit&) = default;
};

/// A Kubernetes node as a place for a worker, with scalingMode DaemonSet.
struct Host {
  Fit fit;
  std::string slurm_node;  ///< The worker's name in Slurm and its hostname.
  core::WallTime created;
  /// Another Kubernetes node that gives its worker the same name and takes precedence; "": none.
  std::string twin{};
  bool wanted = false;  ///< It should have a worker.
};
using Hosts = std::map<std::string, Host, std::less<>>;

enum class Life {
  kLive,
  kEnded,        ///< Phase Failed or Succeeded.
  kTerminating,  ///< Deleted, but not gone.
};

/// Identifies a place: it has a number with scalingMode StatefulSet, or a Kubernetes node with DaemonSet. Both kinds exist
/// while a NodeSet changes its mode.
struct SlotKey {
  int ordinal = -1;         ///< -1: none.
  std::string kube_node{};  ///< "": none.

  [[nodiscard]] bool numbered() const { return ordinal >= 0; }
  auto operator<=>(const SlotKey&) const = default;
};

/// What can be expected of a worker.
enum class Prospect {
  kServes,     ///< It serves or soon will, as far as is known.
  kLost,       ///< Slurm has no node for it, and its slurmd will not register (again). It can only be replaced.
  kUnpinned,   ///< It waits for a Kubernetes node to which it is no longer pinned. It can only be replaced.
  kOutdated,   ///< It has an earlier template and got stuck before its slurmd ever ran. It can only be replaced.
  kNoRoom,     ///< It does not register because slurmctld already has MaxNodeCount nodes.
  kElsewhere,  ///< It may have registered under another name: Slot::suspect.
  kStateLost,  ///< Slurm has lost its node and many others.
};

/// A fact that changes with time, without anything waking the key.
struct Change {
  core::Duration in;
  std::string_view why;
};

/// Evidence about a worker's pod that follows from Slurm's about its node.
template <class Kind>
class WorkerEvidence final : public kube::PodEvidence {
 public:
  WorkerEvidence(const plan::Observing& observing, const kube::PodRecord& pod, Kind node)
      : PodEvidence(observing, pod, node.kind(), node.detail(), node.good_until()), node_(std::move(node)) {}
  [[nodiscard]] const Kind& node() const { return node_; }

 private:
  Kind node_;
};

/// All evidence that the facts allow for the deletion of a worker. The plan chooses.
struct SlotEvidence {
  std::optional<kube::NeverStarted> never_started;
  std::optional<kube::Ended> ended;
  std::optional<OwnerEnds> owner_ends;
  std::optional<WorkerEvidence<slurm::Drained>> drained;
  std::optional<WorkerEvidence<slurm::NeverRegistered>> never_registered;
  std::optional<WorkerEvidence<slurm::Forgotten>> forgotten;
  std::optional<WorkerEvidence<slurm::Silent>> silent;
  std::optional<slurm::DrainTimedOut> timed_out;  ///< For spec.drainPolicy. Not about the pod: jobs still run there.
};

struct Slot {
  SlotKey key;
  kube::PodPtr pod;
  std::string node;  ///< Name of its Slurm node. Once seen there, it is written on the pod and never changes.
  const slurm::Node* record = nullptr;  ///< Slurm's record; null: there is none, or Slurm has not answered.
  std::optional<KubeNode> kube_node;    ///< Empty: it has none, or that is gone or not known (yet).
  Life life = Life::kLive;
  slurm::Work work;
  /// A Slurm node of another name, with jobs or open for jobs, that may be this worker's: it has no record, or its slurmd was
  /// restarted since. "": none.
  std::string suspect;
  bool stamped = false;      ///< It was seen in Slurm before.
  bool user_cordon = false;  ///< Annotation pod-cordon, or pod-cordon-requested.
  bool released = false;     ///< Annotation pod-release: it may be deleted whatever it runs.
  /// Annotation deletion-evidence: its node was drained, and its record was deleted or about to be.
  bool cleared_for_deletion = false;
  /// It had registered before it was cleared for deletion. Its slurmd does not register again by itself.
  bool deregistered = false;
  /// It is ready and was registered, but Slurm has had no node for it since then, according to its condition.
  std::optional<core::WallTime> missing_since;
  /// A user has confirmed the loss, so it may be replaced although Slurm has lost many nodes.
  bool loss_confirmed = false;
  /// For how long the operator has had it drained for its deletion; empty: it is not.
  std::optional<core::Duration> drained_for;
  /// Since when its slurmd, unknown to Slurm, may be about to register; nullopt: it cannot.
  std::optional<core::MonoTime> may_register_since;
  /// How much longer it may take to register (again) once it is ready. Not positive: overdue.
  core::Duration registration_left{0};
  Prospect prospect = Prospect::kServes;
  std::optional<Change> change;  ///< When the prospect may change.
  SlotEvidence evidence;

  [[nodiscard]] bool ready() const { return life == Life::kLive && pod->ready(); }
  [[nodiscard]] bool drained_by_us() const;
  [[nodiscard]] bool has_flag(std::string_view flag) const { return record != nullptr && record->state.has(flag); }
  /// ALLOCATED, MIXED or COMPLETING, or a job holds it.
  [[nodiscard]] bool busy() const;
  /// Slurm would start jobs on it or runs some.
  [[nodiscard]] bool usable() const;
  /// Its Kubernetes node is cordoned or has a taint that announces its end.
  [[nodiscard]] bool kube_cordon() const { return kube_node && (kube_node->unschedulable || !kube_node->goes.empty()); }
  /// Its Kubernetes node is gone or not known (yet).
  [[nodiscard]] bool unplaced() const { return !pod->node_name.empty() && !kube_node; }
  /// Its Kubernetes node is gone, not known (yet), or its kubelet was not heard recently.
  [[nodiscard]] bool host_lost() const { return !pod->node_name.empty() && (!kube_node || !kube_node->ready); }
};

/// An administrator drained the node, or set it down or failing.
[[nodiscard]] bool held_by_others(const slurm::Node& node);
[[nodiscard]] bool held_by_others(const Slot& slot);

/// When to plan again if there is something to do but Slurm's answer is too old to act on.
inline constexpr Change kFreshAgain{core::Duration{1000}, "what Slurm last said is too old to act on"};

/// The workers of a NodeSet, sorted by place. Needs all that `observe` copies, and `hash`.
[[nodiscard]] std::vector<Slot> read_slots(const Observed& observed, const plan::Observing& observing);
/// Evidence that the slurmds of pods that are gone have ended, from the answers in `live`. By Slurm node.
[[nodiscard]] std::map<std::string, slurm::SlurmdEnded, std::less<>> read_ended(const Observed& observed,
                                                                                const plan::Observing& observing);
/// Evidence that records belong to nobody because their workers' Kubernetes nodes are gone, from the answers in `live`. By
/// Slurm node.
[[nodiscard]] std::map<std::string, slurm::LeftBehind, std::less<>> read_left_behind(const Observed& observed,
                                                                                     const plan::Observing& observing);

}  // namespace op::nodeset
