// The places of a NodeSet, and what stands in each: the worker's pod, its Slurm node, its Kubernetes node, its work, and the
// evidence that it may go. `observe` fills them in; what is in them follows from what it copied, and decides nothing.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/evidence.hpp"
#include "cluster/workers.hpp"
#include "kube/acts.hpp"
#include "slurm/evidence.hpp"

namespace op::nodeset {

struct Observed;

/// What matters of a Kubernetes node that runs workers.
struct KubeNode {
  bool unschedulable = false;
  std::string cordon_reason;  ///< Its annotation nodeset.slinky.slurm.net/node-cordon-reason.
  bool ready = true;          ///< Its kubelet says so, and was heard lately.
  std::string goes{};         ///< A taint by which somebody announces that the node goes: its key; "": there is none.
  std::string troubles{};     ///< What Options::propagated_conditions say: "(BadCPU: CPU 17 is broken)"; "": nothing.
  bool known = true;          ///< False: nobody can be asked, and what stands here is assumed.
  std::string topology{};     ///< Its annotation topology.slinky.slurm.net/spec.
  std::string place{};        ///< Its topology by its labels, where the Controller asks for them; "": it lacks one.
  std::string lacks{};        ///< That label; "": none, or the Controller asks for no places.
  std::set<std::string, std::less<>> features{};  ///< That its workers' Slurm nodes are to have, with their prefix.
  friend bool operator==(const KubeNode&, const KubeNode&) = default;
};

/// What a Kubernetes node means for a worker that is bound to it.
struct Fit {
  bool starts = false;  ///< One is made there.
  bool stays = false;   ///< One that is there goes on: a taint NoSchedule keeps only new ones away.
  [[nodiscard]] bool any() const { return starts || stays; }
  friend bool operator==(const Fit&, const Fit&) = default;
};

/// A Kubernetes node as a place for a worker, with scalingMode DaemonSet.
struct Host {
  Fit fit;
  std::string slurm_node;  ///< What the worker there is called in Slurm, and its hostname.
  core::WallTime created;
  /// Another Kubernetes node that gives its worker the same name, and comes first; "": none.
  std::string twin{};
  bool wanted = false;  ///< A worker is to be there.
};
using Hosts = std::map<std::string, Host, std::less<>>;

enum class Life {
  kLive,
  kEnded,        ///< Phase Failed or Succeeded.
  kTerminating,  ///< Deleted, but not gone.
};

/// Which place it is: one with a number, as with scalingMode StatefulSet, or one that is bound to a Kubernetes node, as with
/// DaemonSet. Places of both are there while a NodeSet changes its mode.
struct SlotKey {
  int ordinal = -1;         ///< -1: it has none.
  std::string kube_node{};  ///< "": it is bound to none.

  [[nodiscard]] bool numbered() const { return ordinal >= 0; }
  auto operator<=>(const SlotKey&) const = default;
};

/// What is to be expected of a worker.
enum class Prospect {
  kServes,     ///< Nothing says that it does not serve, or soon will.
  kLost,       ///< Slurm has no node of its, and its slurmd will not register (again): it can only be replaced.
  kUnpinned,   ///< It waits for a Kubernetes node to which it is no longer pinned: likewise.
  kOutdated,   ///< It is of an earlier template, and got stuck before its slurmd ever ran: likewise.
  kNoRoom,     ///< It does not register, and slurmctld has as many nodes as MaxNodeCount lets it.
  kElsewhere,  ///< It may have registered under another name: Slot::suspect.
  kStateLost,  ///< Slurm should remember it, and has not for long, nor many others.
};

/// A fact that becomes another without anything waking the key.
struct Change {
  core::Duration in;
  std::string_view why;
};

/// What Slurm's word about a worker's node says of its pod.
template <class Kind>
class WorkerEvidence final : public kube::PodEvidence {
 public:
  WorkerEvidence(const plan::Observing& observing, const kube::PodRecord& pod, Kind node)
      : PodEvidence(observing, pod, node.kind(), node.detail(), node.good_until()), node_(std::move(node)) {}
  [[nodiscard]] const Kind& node() const { return node_; }

 private:
  Kind node_;
};

/// That a worker may go: all that the facts allow. Which of it is used, the plan decides.
struct SlotEvidence {
  std::optional<kube::NeverStarted> never_started;
  std::optional<kube::Ended> ended;
  std::optional<OwnerEnds> owner_ends;
  std::optional<WorkerEvidence<slurm::Drained>> drained;
  std::optional<WorkerEvidence<slurm::NeverRegistered>> never_registered;
  std::optional<WorkerEvidence<slurm::Forgotten>> forgotten;
  std::optional<WorkerEvidence<slurm::Silent>> silent;
  std::optional<slurm::DrainTimedOut> timed_out;  ///< Of spec.drainPolicy. It says nothing of the pod: jobs are still there.
};

struct Slot {
  SlotKey key;
  kube::PodPtr pod;
  std::string node;                     ///< Its Slurm node's name; once seen, that is written on the pod, and never changes.
  const slurm::Node* record = nullptr;  ///< What Slurm last said of it; null: absent, or nothing is known.
  std::optional<KubeNode> kube_node;    ///< Empty: it is on none, or that is gone or not known (yet).
  Life life = Life::kLive;
  slurm::Work work;
  /// Where it has no record, or its slurmd was started again since: a Slurm node of another name with jobs, or that takes some,
  /// which may be its slurmd's; "": there is none.
  std::string suspect;
  bool stamped = false;      ///< It was seen in Slurm before.
  bool user_cordon = false;  ///< Annotation pod-cordon, or pod-cordon-requested.
  bool released = false;     ///< Annotation pod-release: it may go, whatever it runs.
  /// Annotation deletion-evidence: its node was drained, and its record is or was about to go.
  bool cleared_for_deletion = false;
  /// Slurm had let it go when it was cleared for deletion: its slurmd does not register again by itself.
  bool deregistered = false;
  /// It is ready and was registered, but Slurm has missed its node since then, as its condition says.
  std::optional<core::WallTime> missing_since;
  /// A person has confirmed that, so it may be replaced although Slurm has lost many.
  bool loss_confirmed = false;
  /// So long it has been drained by us to go; empty: it is not.
  std::optional<core::Duration> drained_for;
  /// Since when its slurmd, which Slurm does not know, may be about to register; nullopt: it cannot.
  std::optional<core::MonoTime> may_register_since;
  /// How much longer it may take to register (again) when it is ready; not positive: it is overdue.
  core::Duration registration_left{0};
  Prospect prospect = Prospect::kServes;
  std::optional<Change> change;  ///< When the prospect may be another.
  SlotEvidence evidence;

  [[nodiscard]] bool ready() const { return life == Life::kLive && pod->ready(); }
  [[nodiscard]] bool drained_by_us() const;
  [[nodiscard]] bool has_flag(std::string_view flag) const { return record != nullptr && record->state.has(flag); }
  /// ALLOCATED, MIXED or COMPLETING, or a job holds it.
  [[nodiscard]] bool busy() const;
  /// Slurm would start jobs on it, or runs some.
  [[nodiscard]] bool usable() const;
  /// Its Kubernetes node is cordoned, or is said to go.
  [[nodiscard]] bool kube_cordon() const { return kube_node && (kube_node->unschedulable || !kube_node->goes.empty()); }
  /// Its Kubernetes node is gone, or not known (yet).
  [[nodiscard]] bool unplaced() const { return !pod->node_name.empty() && !kube_node; }
  /// The same, or its kubelet was not heard lately.
  [[nodiscard]] bool host_lost() const { return !pod->node_name.empty() && (!kube_node || !kube_node->ready); }
};

/// An administrator drained the node, or set it down or failing.
[[nodiscard]] bool held_by_others(const slurm::Node& node);
[[nodiscard]] bool held_by_others(const Slot& slot);

/// How old Slurm's word may be where it is only asked again: so soon is something to do planned again.
inline constexpr Change kFreshAgain{core::Duration{1000}, "what Slurm last said is too old to act on"};

/// The workers of a NodeSet, by their places. Needs of `observed` all that is copied, and `hash`.
[[nodiscard]] std::vector<Slot> read_slots(const Observed& observed, const plan::Observing& observing);
/// That the slurmds behind Slurm nodes of pods that are no more have ended with these, by the answers in `live`.
[[nodiscard]] std::map<std::string, slurm::SlurmdEnded, std::less<>> read_ended(const Observed& observed,
                                                                                const plan::Observing& observing);
/// That records are nobody's any more, for the Kubernetes nodes of their workers are gone, by the answers in `live`.
[[nodiscard]] std::map<std::string, slurm::LeftBehind, std::less<>> read_left_behind(const Observed& observed,
                                                                                     const plan::Observing& observing);

}  // namespace op::nodeset
