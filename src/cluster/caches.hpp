// The caches that programs about a Slurm cluster read: what of which resource, by which labels, and their indices. A controller
// asks for them by these declarations (cluster/wiring.hpp); those who ask for the same one share it.
//
// Secrets and ConfigMaps that users name have no cache: they are read one by one through kube::Recorder.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/cache/cache.hpp"
#include "kube/object.hpp"
#include "slurm/model.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace op {

/// The declaration of a cache.
template <class Record>
struct CacheOf {
  const kube::Resource& resource;
  std::string_view label_selector = {};  ///< "": all of them.
  std::vector<std::pair<std::string_view, typename kube::Cache<Record>::IndexFunction>> indices = {};
};

namespace caches {
// Our kinds, whole.
extern const CacheOf<kube::Object> kControllers, kRestApis, kNodeSets, kLoginSets, kAccountings, kTokens;
// Children, those with the label app.kubernetes.io/name of one of Slurm's daemons.
extern const CacheOf<kube::PodRecord> kPods;  ///< slurmctld, slurmdbd, its MariaDB, slurmrestd, login nodes and all workers.
extern const CacheOf<kube::Object> kServices, kConfigMaps, kStatefulSets, kDeployments, kPodDisruptionBudgets,
    kControllerRevisions;
/// slurmctld's, for the StatefulSet controller puts the selector's labels on those that it makes; and workers'.
extern const CacheOf<kube::Object> kClaims;
/// Those that the operator made, not Kubernetes' own of Services.
extern const CacheOf<kube::Object> kEndpointSlices;
extern const CacheOf<kube::SecretRecord> kTokenSecrets;  ///< That Tokens made.
extern const CacheOf<kube::NodeRecord> kNodes;           ///< Of Kubernetes, all.
}  // namespace caches

/// Index of pods and claims by "ns/app/instance", e.g. "default/slurmctld/demo", and of workers by "ns/cluster", e.g.
/// "default/demo".
inline constexpr std::string_view kIndexInstance = "instance";
inline constexpr std::string_view kIndexCluster = "cluster";
/// Index of pods by the Kubernetes node on which they run.
inline constexpr std::string_view kIndexNode = "node";
/// Index of RestApis, NodeSets and LoginSets by the key of the Controller that they name, "ns/name".
inline constexpr std::string_view kIndexController = "controller";
/// Index of Controllers by the key of the Accounting that they name, "ns/name".
inline constexpr std::string_view kIndexAccounting = "accounting";
/// Index of pods, ControllerRevisions and Tokens' Secrets by the uid of their owner.
inline constexpr std::string_view kIndexOwner = "owner";

std::string instance_key(std::string_view ns, std::string_view app, std::string_view instance);
/// The Controller that a RestApi, NodeSet or LoginSet names.
kube::Key controller_ref(const kube::Object& object);
/// The Accounting that a Controller names; its name is "" where it names none.
kube::Key accounting_ref(const kube::Object& controller);
/// Somebody changed what is wanted: the spec, or whether it is to go. Status alone does not count.
bool intent_changed(const kube::Object& before, const kube::Object& after);

/// To ask for the workers of a NodeSet.
std::function<std::vector<kube::PodPtr>(const kube::Object& nodeset)> workers_in(const kube::Cache<kube::PodRecord>& pods);

/// What Slurm last said of a cluster; null when no server is known for it.
using SnapshotSource = std::function<slurm::SnapshotPtr(const slurm::ClusterKey&)>;

}  // namespace op
