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
#include "cluster/names.hpp"
#include "cluster/namesakes.hpp"
#include "cluster/status.hpp"
#include "cluster/wiring.hpp"
#include "cluster/workers.hpp"
#include "kube/controller.hpp"
#include "operator/nodeset/slots.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace op::nodeset {

/// What a NodeSet needs of the Controller that it names.
struct ControllerView {
  kube::ObjectMeta meta;
  Endpoint endpoint;
  KeyRef slurm_key;                ///< As the Controller's user names it, or generated.
  bool drain_on_deletion = false;  ///< deletionPolicy: Drain.
  /// Where slurmctld's state ends with its pod: since when that is there.
  std::optional<core::WallTime> state_since;
  std::optional<core::WallTime> ready_since;  ///< Since when slurmctld's pod is ready, if it is.
  core::Duration slurmd_timeout{300000};      ///< SlurmdTimeout; 0: slurmctld waits for ever.
  std::optional<std::size_t> max_nodes{};     ///< MaxNodeCount of slurm.conf.
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
};

/// What another machine says to have been at a time of its own clock, which may be another than ours.
struct Told {
  core::WallTime at;
  core::MonoTime since;  ///< When we first saw that.
};
using ToldOf = std::map<std::string, Told, std::less<>>;

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
  ToldOf pre_stops;  ///< Pods whose own preStop has drained their Slurm node, by uid.
  ToldOf ready;      ///< Pods that are ready, by uid.
  void look(const Observed& observed);

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

  std::vector<Problem> missing;                      ///< Of the Secrets and ConfigMaps that the workers' parts name.
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
  std::map<std::string, KubeNode, std::less<>> nodes;  ///< Of those that run our pods, the ones that are known.
  std::set<std::string, std::less<>> other_workers;    ///< With hostNetwork: Slurm nodes of the cluster's other workers.
  std::map<LiveObject, LiveAnswer> live;               ///< What the API server itself has answered in this pass.
  slurm::SnapshotPtr snapshot;                         ///< Null: no server known.
  std::string cluster_domain = "cluster.local";
  std::string worker_priority_class;  ///< Of workers whose NodeSet names none.

  // What follows from the above; see conclude().
  std::string hash;         ///< controller-revision-hash of the wanted workers; empty when the spec cannot be read.
  std::vector<Slot> slots;  ///< By place. Pods without an ordinal have none.
  /// By Slurm node: nothing that its slurmd ran is there any more.
  std::map<std::string, slurm::SlurmdEnded, std::less<>> ended;

  [[nodiscard]] const kube::ObjectMeta& meta() const { return object->meta; }
  [[nodiscard]] slurm::ClusterKey cluster() const { return cluster_key(meta().ns, nodeset.spec.controller_ref.name); }
};

/// What is asked about a pod that is no more, and about its Kubernetes node.
[[nodiscard]] LiveObject live_pod(const kube::ObjectMeta& nodeset, const SeenPod& pod);
[[nodiscard]] LiveObject live_host(const SeenPod& pod);
/// Fills in what follows from what was copied, and from the answers to what the plan before it needed; evidence included.
void conclude(Observed& observed, const plan::Facts& answers, const plan::Observing& observing);

/// The Slurm node behind a worker, as last seen; null: there is none. With host networking slurmd registers under the host's
/// own name, which need not be the Kubernetes node's: until that is stamped on the pod, it is known by our feature or comment,
/// the pod's address and when slurmd was started; two that fit are none.
[[nodiscard]] const slurm::Node* find_slurm_node(const Observed& observed, const kube::PodRecord& worker);
/// The slurmd that Slurm knows there was started before this pod was made: it is an earlier one's. A second of skew is allowed.
[[nodiscard]] bool began_before(const slurm::Node& node, const kube::PodRecord& pod);

struct Options {
  std::string cluster_domain = "cluster.local";  ///< For the DNS search path of workers.
  std::string worker_priority_class = {};        ///< Of workers whose NodeSet names none; "": the cluster's default.
};

/// What it reads.
struct Caches {
  explicit Caches(Wiring& wiring);
  kube::Cache<kube::Object>&nodesets, &controllers, &config_maps, &controller_revisions;
  kube::Cache<kube::PodRecord>& pods;
  kube::Cache<kube::NodeRecord>& nodes;
  [[nodiscard]] bool synced() const;
};

/// One key is one NodeSet. What wakes it is in declaration.cpp.
class NodeSetController final : public kube::TypedController<Observed> {
 public:
  explicit NodeSetController(Wiring& wiring, Options options = {});
  [[nodiscard]] std::string name() const override { return "nodeset"; }
  /// Its cluster's.
  [[nodiscard]] std::string share(const kube::Key& key) const override;

 protected:
  [[nodiscard]] std::shared_ptr<const Observed> observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                              const kube::Observation& context) override;
  [[nodiscard]] plan::Plan plan_typed(const Observed& observed) const override;

 private:
  /// A kubelet says that a pod has ended, and deletes it, in one go: a pass may see neither.
  void note_end(const kube::PodRecord& gone);
  [[nodiscard]] std::string doubt(const slurm::ClusterKey& cluster, const Observed& observed);

  /// What is known of a Kubernetes node by name; nullopt when it is unknown or gone.
  [[nodiscard]] std::optional<KubeNode> kube_node(const std::string& name) const;

  Wiring& wiring_;
  Caches caches_;
  Options options_;
  std::map<kube::Key, Seen> seen_;
  /// What doubt_of said last of a cluster, and of which round of polls: its NodeSets share it.
  std::map<slurm::ClusterKey, std::pair<std::uint64_t, std::string>> doubts_;
};

}  // namespace op::nodeset
