// The facts of one pass over a NodeSet. `observe` copies them from the caches. All later parts of the pass are pure functions
// of these facts.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/controller.hpp"
#include "api/nodeset.hpp"
#include "kube/object.hpp"
#include "operator/common/namesakes.hpp"
#include "operator/common/slinky.hpp"
#include "operator/common/topology.hpp"
#include "operator/nodeset/node_loss.hpp"
#include "operator/nodeset/slots.hpp"
#include "plan/plan.hpp"
#include "slinky/config_map.hpp"
#include "slinky/names.hpp"
#include "slinky/status.hpp"
#include "slinky/workers.hpp"
#include "slurm/reservation.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace op::nodeset {

/// The facts about the Controller that a NodeSet needs.
struct ControllerView {
  kube::ObjectMeta meta;  ///< deletion_timestamp is set only once the Controller announces that its cluster ends.
  Endpoint endpoint;
  std::string conf_servers{};      ///< The slurmctlds that slurmd can contact, backups included.
  KeyRef slurm_key;                ///< Slurm's key: the one that the user names, or the generated one.
  bool external = false;           ///< The operator does not run slurmctld. Slurm can have nodes that are not workers.
  bool drain_on_deletion = false;  ///< The Controller has deletionPolicy Drain or is external.
  /// The creation time of slurmctld's pod, if slurmctld's state is lost with the pod. Empty: the state is not lost.
  std::optional<core::WallTime> state_since;
  std::optional<core::WallTime> ready_since;  ///< Since when slurmctld's pod is ready. Empty: it is not ready.
  core::Duration slurmd_timeout{300000};      ///< SlurmdTimeout; 0: slurmctld waits forever.
  std::optional<std::size_t> max_nodes{};     ///< MaxNodeCount of slurm.conf.
  std::optional<api::Topology> topology{};    ///< spec.topology of the Controller.
  /// The units in the loaded topology.yaml, without those that are about to be removed. Read only if `topology` is set.
  TopologyUnits loaded_units{};
  bool topology_goes = false;      ///< A topology.yaml from an earlier spec.topology still exists.
  std::optional<Places> places{};  ///< The places that the user's topology file assigns to workers: see read_places.
  bool contains_jobs = true;       ///< PrologFlags in slurm.conf has Contain, as far as is known.
  /// Whether the copy of `slurm_key` that workers mount exists. kAbsent only if the original does not exist either.
  kube::Presence key = kube::Presence::kUnknown;
};

struct Observed;

/// A pod as it was last observed.
struct SeenPod {
  std::string name, kube_node, slurm_node;
  std::optional<core::WallTime> slurmd{};  ///< When the pod's slurmd was started, according to Slurm's last record.
  bool ended = false;                      ///< The phase of the pod is or was Failed or Succeeded.
  bool placed = false;                     ///< The Kubernetes node of the pod is or was known.
  bool host_gone = false;                  ///< The Kubernetes node was known before and is no longer known.
  /// A drain of the Slurm node that the operator set because it is going to delete the pod.
  struct Drain {
    core::WallTime at;      ///< When the drain began, by slurmctld's clock.
    core::MonoTime since;   ///< When the operator first saw the drain.
    core::Duration before;  ///< How long the drain had lasted at `since`.
    bool scale_in;          ///< The drain is for a scale-in.
  };
  std::optional<Drain> drain{};
  bool not_drained = false;  ///< Slurm has reported that the operator has not drained the node for a deletion.
};

/// A time that another machine reported by its own clock, which can differ from the operator's clock.
struct Told {
  core::WallTime at;
  core::MonoTime since;  ///< When the operator first saw the time.
};
using ToldOf = std::map<std::string, Told, std::less<>>;

/// Slurm's reservations as they were last read.
struct SeenReservations {
  std::vector<slurm::Reservation> all;
  core::MonoTime asked_at;
};

/// The API server's last answer to the question whether it would create a pod from a template.
struct SeenTemplate {
  std::string hash;                  ///< The hash of the template's revision.
  std::optional<core::Error> error;  ///< Empty: the API server would create the pod.
  core::MonoTime asked_at;
};

/// If a worker is found busy within this time after its drain, the operator did not know the worker's job when it chose the
/// worker for a scale-in.
inline constexpr core::Duration kJustDrained{10000};

/// A series of drains for scale-ins. Each drain began less than kJustDrained after the previous one.
struct SeenScaleIn {
  core::MonoTime first;  ///< When the first of the drains began.
  core::MonoTime last;   ///< When the last of the drains began.
};

struct ClaimNote {
  std::string text;  ///< Why the claim gets no volume. "": no event gives a reason.
  core::MonoTime read;
};

/// Records since when the operator has seen each state that lasts. The times come from the operator's own clock, because the
/// clock of the API server can differ. The times are lost when the operator restarts, which only causes a delay.
struct Seen {
  std::optional<core::MonoTime> podless_since;          ///< Since when a NodeSet that is being deleted has no pod.
  std::map<std::string, SeenPod, std::less<>> workers;  ///< The pods of the last observation, by uid.
  /// Pods that are gone, by Slurm node. A pod is listed while Slurm has its node and no other pod uses the node.
  std::map<std::string, SeenPod, std::less<>> gone;
  /// By uid: since when the pod has been terminating.
  std::map<std::string, core::MonoTime, std::less<>> terminating_since;
  /// By uid of a ready pod: since when Slurm's complete answers have not contained the pod's Slurm node.
  std::map<std::string, core::MonoTime, std::less<>> unknown_since;
  /// By uid: since when the kubelet has reported that none of the pod's containers ever ran.
  std::map<std::string, core::MonoTime, std::less<>> unstarted_since;
  /// By uid of a pod that has a Kubernetes node: since when Slurm's complete answers have not contained the pod's Slurm node.
  std::map<std::string, core::MonoTime, std::less<>> placed_since;
  /// By uid of a pod whose slurmd was started: since when Slurm's complete answers have not contained the pod's Slurm node.
  std::map<std::string, core::MonoTime, std::less<>> started_since;
  /// Why claims get no volume, by claim name, as of the last read of events.
  std::map<std::string, ClaimNote, std::less<>> claim_notes;
  std::optional<SeenScaleIn> scale_in;           ///< The last drains for scale-ins. Empty: there were none.
  std::optional<SeenReservations> reservations;  ///< The last read. Empty: never read.
  std::optional<SeenTemplate> checked_template;  ///< The last answer about a template. Empty: never asked.
  ToldOf pre_stops;                              ///< By uid: when the pod's preStop hook drained its Slurm node.
  ToldOf ready;                                  ///< By uid: since when the pod has been ready.
  void look(const Observed& observed);
  /// Records why claims get no volume, from the events that the last plan asked for.
  void note_claims(const Observed& observed, const plan::Facts& answers);
  /// Records Slurm's reservations, if the last plan asked for them.
  void note_reservations(const Observed& observed, const plan::Facts& answers);
  /// Records whether the API server would create a pod of a template, if the last plan asked for that.
  void note_template(const plan::Facts& answers);

 private:
  void note_gone(const Observed& observed);
  void note_scale_in();
};

/// An object to read directly from the API server.
struct LiveObject {
  kube::Resource resource;
  kube::Key key;
  /// Returns the id of the plan::Need to read this object.
  [[nodiscard]] std::string id() const { return resource.kind + " " + key.name; }
  bool operator<(const LiveObject& other) const { return id() < other.id(); }
};
/// The API server's answer: whether the object exists.
struct LiveAnswer {
  kube::Presence presence = kube::Presence::kUnknown;
  core::MonoTime asked_at;
};

struct Observed {
  core::WallTime now;
  core::MonoTime mono;
  plan::Outcomes outcomes;

  kube::ObjectPtr object;  ///< The NodeSet as stored. Null: the NodeSet is gone, and no other fact is set.
  api::NodeSet nodeset;    ///< The parsed `object`.
  std::string invalid;     ///< Why the spec cannot be parsed. In this case, `nodeset` has only controllerRef and the status.

  std::optional<Problem> newer;              ///< Set if the workers' image is newer than slurmctld: see slinky/releases.hpp.
  std::vector<Problem> missing;              ///< Missing Secrets and ConfigMaps that the workers' spec names.
  kube::Presence host_keys{};                ///< Whether the host keys for sshd exist. Read only if workers run sshd.
  std::optional<ControllerView> controller;  ///< Empty: the Controller does not exist or cannot be parsed.
  std::string controller_error;              ///< Why the Controller cannot be parsed.
  bool stopped = false;                      ///< An annotation of the Controller stops all deletions.
  std::string doubt;                         ///< Why Slurm's answers must not lead to deletions. "": no doubt. See doubt_of.
  std::string partition_refusal;             ///< slurmctld's error if it refused spec.partition.config and runs without it.
  /// Another NodeSet of the same Controller that has the same name in Slurm and takes precedence; "": none.
  std::string namesake;
  std::vector<Rival> rivals;                         ///< Other NodeSets whose workers might have the same names as ours.
  std::set<std::string, std::less<>> nodeset_names;  ///< Names in Slurm of the Controller's other NodeSets.
  std::vector<kube::PodPtr> pods;                    ///< The pods that this NodeSet owns.
  Seen seen;
  std::vector<kube::PodPtr> orphans;  ///< Workers without an existing owner, labelled with this NodeSet and its cluster.
  /// Pods that the operator does not change, but whose names are in use. These are workers without an owner whose labels name
  /// this NodeSet but another cluster, and our own workers whose label app.kubernetes.io/instance somebody changed.
  std::vector<kube::PodPtr> unmanaged;
  /// ControllerRevisions of this NodeSet, and ControllerRevisions without an owner that have this NodeSet's name.
  std::vector<kube::ObjectPtr> revisions;
  /// PersistentVolumeClaims with our labels or with the names of our workers' claims, by name.
  std::map<std::string, kube::ObjectPtr, std::less<>> claims;
  /// The known Kubernetes nodes, by name, on which our pods run or to which the pods are pinned.
  std::map<std::string, KubeNode, std::less<>> nodes;
  /// All Kubernetes nodes, with scalingMode DaemonSet.
  Hosts hosts;
  bool reads_kube_nodes = true;  ///< True if the operator is allowed to read Kubernetes nodes.
  bool no_kube_nodes = false;    ///< Kubernetes reports no node at all.
  /// Only with scalingMode DaemonSet and pruneSlurmNodeRecords. Kubernetes nodes that are no longer known, although Slurm's
  /// records of workers name them as hosts.
  std::map<std::string, std::string, std::less<>> lost_hosts;  ///< By Slurm node.
  std::set<std::string, std::less<>> other_workers;            ///< With hostNetwork: Slurm nodes of workers that are not ours.
  std::map<LiveObject, LiveAnswer> live;                       ///< The API server's direct answers in this pass.
  slurm::SnapshotPtr snapshot;                                 ///< Null: no slurmrestd is known.
  /// Slurm nodes whose names belong to no known worker of the cluster, but whose slurmd might run in a worker of ours and have
  /// registered under another name. See find_strays().
  std::vector<const slurm::Node*> strays;
  std::string cluster_domain = "cluster.local";
  std::string worker_priority_class;  ///< Default priority class of workers.

  // conclude() derives these from the members above.
  /// True: the API server has confirmed that the NodeSet is not being deleted. False: the API server has not confirmed this, or
  /// could not be asked. Empty: the operator did not ask. It asks only after it has seen claims, workers or revisions without
  /// an owner.
  std::optional<bool> stays;
  NodeLoss node_loss{};     ///< Only with scalingMode DaemonSet.
  std::string hash;         ///< controller-revision-hash of the wanted workers; "" if the spec cannot be parsed.
  std::string base;         ///< The hash for workers below spec.updateStrategy.rollingUpdate.partition. "": equal to `hash`.
  std::vector<Slot> slots;  ///< Sorted by place. Pods without a place are not included.
  /// By Slurm node: evidence that a slurmd, and everything that slurmd ran, has ended.
  std::map<std::string, slurm::SlurmdEnded, std::less<>> ended;
  /// By Slurm node: evidence that the Kubernetes node of the worker is gone.
  std::map<std::string, slurm::LeftBehind, std::less<>> left_behind;
  /// Evidence that Slurm has a reservation of this NodeSet, from a recent answer of Slurm.
  std::optional<slurm::OwnReservation> own_reservation;

  [[nodiscard]] const kube::ObjectMeta& meta() const { return object->meta; }
  /// True with scalingMode DaemonSet.
  [[nodiscard]] bool by_host() const { return nodeset.spec.scaling_mode == api::ScalingMode::kDaemonSet; }
  [[nodiscard]] slurm::ClusterKey cluster() const { return cluster_key(meta().ns, nodeset.spec.controller_ref.name); }
  /// With scalingMode DaemonSet: returns the number of Kubernetes nodes that should have a worker.
  [[nodiscard]] int hosts_wanted() const;
  /// True if spec.updateStrategy.rollingUpdate.partition keeps the worker of this place at its earlier template.
  [[nodiscard]] bool below_partition(const SlotKey& place) const;
  /// Returns the controller-revision-hash for a new worker of the place.
  [[nodiscard]] const std::string& wanted_hash(const SlotKey& place) const;
};

/// Returns the reason, without prefix, for the drain before a scale-in. The reason also marks the worker as chosen for the
/// scale-in.
[[nodiscard]] std::string scale_in_reason(const kube::ObjectMeta& nodeset);
/// Returns the reason for the drain of a worker that is updated.
[[nodiscard]] std::string update_reason(const kube::ObjectMeta& nodeset);
/// Returns the reason for the drain of a worker that is replaced because of a new scalingMode of the NodeSet.
[[nodiscard]] std::string switch_reason(const kube::ObjectMeta& nodeset, api::ScalingMode mode);
/// Returns the reason for the drain of a worker that is deleted because of its Kubernetes node. `what` is the cause.
[[nodiscard]] std::string place_reason(const kube::ObjectMeta& nodeset, std::string_view what);
/// True if `why` is the result of scale_in_reason, update_reason, switch_reason or place_reason.
[[nodiscard]] bool is_purpose(const kube::ObjectMeta& nodeset, std::string_view why);
/// Returns the reason (see is_purpose) for which the operator has drained the node. "": the node has no such drain, or others
/// hold the node as well.
[[nodiscard]] std::string purpose_of(const kube::ObjectMeta& nodeset, const slurm::Node& node);

/// need_nodeset returns the plan::Need to read the NodeSet from the API server. This is needed before the NodeSet becomes the
/// owner of claims, workers or revisions without an owner. nodeset_stays returns the value of Observed::stays from `answers`.
[[nodiscard]] plan::Need need_nodeset(const Observed& observed);
[[nodiscard]] std::optional<bool> nodeset_stays(const Observed& observed, const plan::Facts& answers);
/// live_pod returns a pod that is gone, as an object to read from the API server. live_host does so for a Kubernetes node.
[[nodiscard]] LiveObject live_pod(const kube::ObjectMeta& nodeset, const SeenPod& pod);
/// The prefix of the id of need_template(), which asks whether the API server would create a pod. The template's hash follows.
inline constexpr std::string_view kAskTemplate = "ask about Pod template ";
[[nodiscard]] LiveObject live_host(const std::string& kube_node);
/// Returns a Kubernetes node to which workers are pinned, as an object to read from the API server.
[[nodiscard]] LiveObject pinned_host(const std::string& node);
/// Returns the Kubernetes node to which status.ordinalToNode pins the next worker of the place. Empty: the worker is not
/// pinned.
[[nodiscard]] std::optional<std::string> recorded_pin(const Observed& observed, const SlotKey& key);
/// Returns the reason of the drain with which the next worker of the Slurm node must register, from status.drainsToRestore.
/// Empty: no drain is recorded.
[[nodiscard]] std::optional<std::string> recorded_drain(const Observed& observed, std::string_view node);
/// Returns the controller-revision-hash for workers below the partition. "": all workers use the newest hash.
[[nodiscard]] std::string base_revision(const Observed& observed);
/// Returns the Kubernetes nodes that Slurm's records of our workers name and for which `known` returns false. The key is the
/// Slurm node. Used with pruneSlurmNodeRecords.
[[nodiscard]] std::map<std::string, std::string, std::less<>> find_lost_hosts(
    const Observed& observed, const std::function<bool(const std::string&)>& known);
/// Derives facts, including evidence, from the copied facts and from the answers to the needs of the previous plan.
void conclude(Observed& observed, const plan::Facts& answers, const plan::Observing& observing);

/// Returns Observed::strays: nodes with our feature, with a comment that names a pod like ours, or with the hostname of one of
/// our pods.
[[nodiscard]] std::vector<const slurm::Node*> find_strays(const Observed& observed);
/// Returns the Slurm node of a worker, or null. slurmd might have registered under an unexpected name: with host networking,
/// workers of earlier releases used the name of the host, and options of slurmd can set a name. Until the name is written on
/// the pod, the node is identified by our feature or comment, by a slurmd that fits the pod, and by the hostname or, with host
/// networking, by the pod's address or by the first DNS label of the Kubernetes node's name. Returns null if two nodes fit.
[[nodiscard]] const slurm::Node* find_slurm_node(const Observed& observed, const kube::PodRecord& worker);
/// Returns a Slurm node other than `known` that might belong to the worker and that runs or accepts jobs, or null. `known` is
/// the node with the worker's name, or null if Slurm has no such node.
[[nodiscard]] const slurm::Node* find_suspect(const Observed& observed, const kube::PodRecord& worker,
                                              const slurm::Node* known);

/// True if the pod's phase is Failed or Succeeded.
[[nodiscard]] bool has_ended(const kube::PodRecord& pod);

}  // namespace op::nodeset
