// NodeSet: what one pass knows. `observe` copies it out of the caches; everything after that is a pure function of it.
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
#include "cluster/config_map.hpp"
#include "cluster/names.hpp"
#include "cluster/namesakes.hpp"
#include "cluster/status.hpp"
#include "cluster/workers.hpp"
#include "kube/object.hpp"
#include "operator/common/topology.hpp"
#include "operator/nodeset/node_loss.hpp"
#include "operator/nodeset/slots.hpp"
#include "plan/plan.hpp"
#include "slurm/reservation.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace op::nodeset {

/// What a NodeSet needs of the Controller that it names.
struct ControllerView {
  kube::ObjectMeta meta;
  Endpoint endpoint;
  std::string conf_servers{};      ///< Where slurmd finds a slurmctld, backups included.
  KeyRef slurm_key;                ///< As the Controller's user names it, or generated.
  bool external = false;           ///< Its slurmctld is somebody else's, and has nodes that are not workers.
  bool drain_on_deletion = false;  ///< deletionPolicy: Drain, or external.
  /// Where slurmctld's state ends with its pod: since when that is there.
  std::optional<core::WallTime> state_since;
  std::optional<core::WallTime> ready_since;  ///< Since when slurmctld's pod is ready, if it is.
  core::Duration slurmd_timeout{300000};      ///< SlurmdTimeout; 0: slurmctld waits for ever.
  std::optional<std::size_t> max_nodes{};     ///< MaxNodeCount of slurm.conf.
  std::optional<api::Topology> topology{};    ///< spec.topology.
  TopologyUnits loaded_units{};               ///< What topology.yaml has that slurmctld has loaded; read only with the above.
  bool topology_goes = false;                 ///< Without spec.topology there is still the topology.yaml made for it.
  std::optional<Places> places{};             ///< A topology file of the user's gives places to workers: see read_places.
  bool contains_jobs = true;                  ///< PrologFlags of slurm.conf has Contain, as far as is known.
  /// Of the copy that workers mount. kAbsent only where there is nothing to copy, either.
  kube::Presence key = kube::Presence::kUnknown;
};

struct Observed;

/// A pod that we saw.
struct SeenPod {
  std::string name, kube_node, slurm_node;
  std::optional<core::WallTime> slurmd{};  ///< When its slurmd was started, as Slurm knew it at last.
  bool ended = false;                      ///< Its kubelet said so, or who knew that this is no more.
  bool placed = false;                     ///< Its Kubernetes node was known,
  bool host_gone = false;                  ///< and is not any more.
  /// Its Slurm node is drained by us for it to go.
  struct Drain {
    core::WallTime at;      ///< Since when, on slurmctld's clock,
    core::MonoTime since;   ///< when we first saw that, and
    core::Duration before;  ///< how long it had lasted by then.
  };
  std::optional<Drain> drain{};
  bool not_drained = false;  ///< Slurm has said that it is not.
};

/// What another machine says to have been at a time of its own clock, which may be another than ours.
struct Told {
  core::WallTime at;
  core::MonoTime since;  ///< When we first saw that.
};
using ToldOf = std::map<std::string, Told, std::less<>>;

/// What Slurm last said of its reservations.
struct SeenReservations {
  std::vector<slurm::Reservation> all;
  core::MonoTime asked_at;
};

/// What the API server said of a pod of a template, when it was asked.
struct SeenTemplate {
  std::string hash;                  ///< Of the template's revision.
  std::optional<core::Error> error;  ///< Empty: it would create the pod.
  core::MonoTime asked_at;
};

struct ClaimNote {
  std::string text;  ///< "": no event says it.
  core::MonoTime read;
};

/// What lasts, and since when we see it: on our own clock, for the API server's may be another. A restart forgets it: then it
/// is later.
struct Seen {
  std::optional<core::MonoTime> podless_since;          ///< The last pod of a NodeSet that was deleted is gone.
  std::map<std::string, SeenPod, std::less<>> workers;  ///< The pods at the last look, by uid.
  /// Pods that are no more, by their Slurm nodes: as long as Slurm has these, and there is no other pod of theirs.
  std::map<std::string, SeenPod, std::less<>> gone;
  /// Pods that were deleted, but are not gone, by uid.
  std::map<std::string, core::MonoTime, std::less<>> terminating_since;
  /// Pods that are ready while Slurm, which answered completely, has no node of theirs, by uid.
  std::map<std::string, core::MonoTime, std::less<>> unknown_since;
  /// Pods of which a kubelet says that no container of theirs ever ran, by uid.
  std::map<std::string, core::MonoTime, std::less<>> unstarted_since;
  /// Pods that a kubelet has, while Slurm, which answered completely, has no node of theirs, by uid: since they were placed,
  std::map<std::string, core::MonoTime, std::less<>> placed_since;
  /// and since their slurmd was started.
  std::map<std::string, core::MonoTime, std::less<>> started_since;
  /// Why claims get no volume, by their names: as events said when they were read last.
  std::map<std::string, ClaimNote, std::less<>> claim_notes;
  std::optional<SeenReservations> reservations;  ///< Empty: nobody has asked.
  std::optional<SeenTemplate> checked_template;  ///< The last one. Empty: nobody has asked.
  ToldOf pre_stops;                              ///< Pods whose own preStop has drained their Slurm node, by uid.
  ToldOf ready;                                  ///< Pods that are ready, by uid.
  void look(const Observed& observed);
  /// Takes down what the last plan asked of claims.
  void note_claims(const Observed& observed, const plan::Facts& answers);
  /// The same of reservations.
  void note_reservations(const Observed& observed, const plan::Facts& answers);
  /// The same of a template.
  void note_template(const plan::Facts& answers);

 private:
  void note_gone(const Observed& observed);
};

/// An object that the API server itself is asked for.
struct LiveObject {
  kube::Resource resource;
  kube::Key key;
  /// Names the need for it.
  [[nodiscard]] std::string id() const { return resource.kind + " " + key.name; }
  bool operator<(const LiveObject& other) const { return id() < other.id(); }
};
/// Whether there is such an object, as it has answered.
struct LiveAnswer {
  kube::Presence presence = kube::Presence::kUnknown;
  core::MonoTime asked_at;
};

struct Observed {
  core::WallTime now;
  core::MonoTime mono;
  plan::Outcomes outcomes;

  kube::ObjectPtr object;  ///< The NodeSet as it stands; null: it is gone, and nothing else is filled in.
  api::NodeSet nodeset;    ///< The same, read.
  std::string invalid;     ///< Why the spec cannot be read; then only controllerRef of it is filled in.

  std::optional<Problem> newer;                      ///< The image is of a later release than slurmctld: cluster/releases.hpp.
  std::vector<Problem> missing;                      ///< Of the Secrets and ConfigMaps that the workers' parts name.
  kube::Presence host_keys{};                        ///< Of the workers' sshd; read where they have one.
  std::optional<ControllerView> controller;          ///< Empty: the API server has no such Controller, or it cannot be read.
  std::string controller_error;                      ///< Why it cannot be read.
  bool stopped = false;                              ///< An annotation of the Controller says that nothing is to be deleted.
  std::string doubt;                                 ///< Why nothing is to be deleted by Slurm's word; see doubt_of.
  std::string partition_refusal;                     ///< slurmctld's words, while it goes on without spec.partition.config.
  std::string namesake;                              ///< Another NodeSet of the same Controller that has our name in Slurm.
  std::vector<Rival> rivals;                         ///< Others whose workers may have names of ours.
  std::set<std::string, std::less<>> nodeset_names;  ///< In Slurm, of the same Controller's other NodeSets.
  std::vector<kube::PodPtr> pods;                    ///< Owned by this NodeSet.
  Seen seen;
  std::vector<kube::PodPtr> orphans;  ///< Workers of its name and cluster that nobody owns, or a NodeSet that is gone.
  /// Pods that are left alone, and only take names: such workers of another cluster, and our own that somebody gave another
  /// app.kubernetes.io/instance.
  std::vector<kube::PodPtr> unmanaged;
  std::vector<kube::ObjectPtr> revisions;  ///< ControllerRevisions of this NodeSet, or of nobody and under its name.
  /// PersistentVolumeClaims that are ours by their labels, and those whose names our own were to have; by name.
  std::map<std::string, kube::ObjectPtr, std::less<>> claims;
  std::map<std::string, KubeNode, std::less<>> nodes;  ///< Of those that run our pods, or are to, the ones that are known.
  /// With scalingMode DaemonSet: all Kubernetes nodes.
  Hosts hosts;
  bool reads_kube_nodes = true;  ///< The operator has the right to.
  bool no_kube_nodes = false;    ///< Kubernetes says that it has no node at all.
  /// With DaemonSet: Kubernetes nodes that are not known any more, and are told by records in Slurm of workers that were there.
  std::map<std::string, std::string, std::less<>> lost_hosts;  ///< By Slurm node.
  std::set<std::string, std::less<>> other_workers;  ///< With hostNetwork: Slurm nodes of the cluster's other workers.
  std::map<LiveObject, LiveAnswer> live;             ///< What the API server itself has answered in this pass.
  slurm::SnapshotPtr snapshot;                       ///< Null: no server known.
  /// Slurm nodes under names of no worker of the cluster that is known here, but by what they say perhaps of one of ours, whose
  /// slurmd has registered under another name; see find_strays().
  std::vector<const slurm::Node*> strays;
  std::string cluster_domain = "cluster.local";
  std::string worker_priority_class;  ///< Of workers whose NodeSet names none.

  // What follows from the above; see conclude().
  /// The NodeSet is not being deleted, as the API server itself says since claims without an owner were seen; empty: it was not
  /// asked.
  std::optional<bool> stays;
  NodeLoss node_loss{};     ///< With DaemonSet.
  std::string hash;         ///< controller-revision-hash of the wanted workers; empty when the spec cannot be read.
  std::string base;         ///< The same below spec.updateStrategy.rollingUpdate.partition, where that is another.
  std::vector<Slot> slots;  ///< By place. Pods without an ordinal have none.
  /// By Slurm node: nothing that its slurmd ran is there any more.
  std::map<std::string, slurm::SlurmdEnded, std::less<>> ended;
  /// By Slurm node: the Kubernetes node that its worker was bound to is gone.
  std::map<std::string, slurm::LeftBehind, std::less<>> left_behind;
  /// Slurm has a reservation of this NodeSet's, as it has said lately.
  std::optional<slurm::OwnReservation> own_reservation;

  [[nodiscard]] const kube::ObjectMeta& meta() const { return object->meta; }
  /// Its places are Kubernetes nodes.
  [[nodiscard]] bool by_host() const { return nodeset.spec.scaling_mode == api::ScalingMode::kDaemonSet; }
  [[nodiscard]] slurm::ClusterKey cluster() const { return cluster_key(meta().ns, nodeset.spec.controller_ref.name); }
  /// How many Kubernetes nodes are to have a worker, with DaemonSet.
  [[nodiscard]] int hosts_wanted() const;
  /// Its worker stays as it is when the template changes.
  [[nodiscard]] bool below_partition(const SlotKey& place) const;
  /// controller-revision-hash of a worker that is to be created.
  [[nodiscard]] const std::string& wanted_hash(const SlotKey& place) const;
};

/// The reasons, without prefix, with which workers that go are drained; by the first a victim stays a victim.
[[nodiscard]] std::string scale_in_reason(const kube::ObjectMeta& nodeset);
/// Of one that is updated.
[[nodiscard]] std::string update_reason(const kube::ObjectMeta& nodeset);
/// Of one that makes room for a worker of the NodeSet's present scalingMode.
[[nodiscard]] std::string switch_reason(const kube::ObjectMeta& nodeset, api::ScalingMode mode);
/// Of one that goes for what its Kubernetes node is, or is not any more: `what`.
[[nodiscard]] std::string place_reason(const kube::ObjectMeta& nodeset, std::string_view what);
/// `why` is one of these reasons.
[[nodiscard]] bool is_purpose(const kube::ObjectMeta& nodeset, std::string_view why);
/// Which of these the node is drained with, by us alone; "": none.
[[nodiscard]] std::string purpose_of(const kube::ObjectMeta& nodeset, const slurm::Node& node);

/// What is asked before claims get the NodeSet as their owner, and the answer.
[[nodiscard]] plan::Need need_nodeset(const Observed& observed);
[[nodiscard]] std::optional<bool> nodeset_stays(const Observed& observed, const plan::Facts& answers);
/// What is asked about a pod that is no more, and about its Kubernetes node.
[[nodiscard]] LiveObject live_pod(const kube::ObjectMeta& nodeset, const SeenPod& pod);
/// Asks whether the API server would create a pod of the template with that hash. Under this id stands the answer.
inline constexpr std::string_view kAskTemplate = "ask about Pod template ";
[[nodiscard]] LiveObject live_host(const std::string& kube_node);
/// The same about a Kubernetes node that workers are pinned to.
[[nodiscard]] LiveObject pinned_host(const std::string& node);
/// The Kubernetes node to which the next worker of the place is pinned, as stands in the API; empty: none.
[[nodiscard]] std::optional<std::string> recorded_pin(const Observed& observed, const SlotKey& key);
/// The reason of the drain with which the next worker of the Slurm node is to register, as stands in the API; empty: none.
[[nodiscard]] std::optional<std::string> recorded_drain(const Observed& observed, std::string_view node);
/// The controller-revision-hash of the template before the newest, of which workers below the partition are; "": there is none,
/// or all workers are of the newest.
[[nodiscard]] std::string base_revision(const Observed& observed);
/// With pruneSlurmNodeRecords: by Slurm node, the Kubernetes nodes that records of our workers name, and that are not `known`.
[[nodiscard]] std::map<std::string, std::string, std::less<>> find_lost_hosts(
    const Observed& observed, const std::function<bool(const std::string&)>& known);
/// Fills in what follows from what was copied, and from the answers to what the plan before it needed; evidence included.
void conclude(Observed& observed, const plan::Facts& answers, const plan::Observing& observing);

/// What Observed::strays is, from the pods and the snapshot: nodes with our feature, a comment that names a pod like ours, or
/// the hostname of one of our pods.
[[nodiscard]] std::vector<const slurm::Node*> find_strays(const Observed& observed);
/// The Slurm node behind a worker, as last seen; null: there is none. slurmd may have registered under another name than is
/// expected: with host networking workers of earlier releases did so under the host's own, and options of slurmd may give one.
/// Until that is stamped on the pod, it is known by our feature or comment, by that its slurmd is the pod's, and by the
/// hostname, or with host networking by the pod's address or the first label of its Kubernetes node's name; two that fit are
/// none.
[[nodiscard]] const slurm::Node* find_slurm_node(const Observed& observed, const kube::PodRecord& worker);
/// A Slurm node that takes or runs jobs, and may be the worker's by all that is known, although that is `known`, or Slurm has
/// no node of its name (null). Null: no such node.
[[nodiscard]] const slurm::Node* find_suspect(const Observed& observed, const kube::PodRecord& worker,
                                              const slurm::Node* known);

/// Its phase says so.
[[nodiscard]] bool has_ended(const kube::PodRecord& pod);

}  // namespace op::nodeset
