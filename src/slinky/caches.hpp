// The caches that programs about a Slurm cluster read: the resources, label selectors and indices. A controller requests a
// cache by its declaration (slinky/wiring.hpp). Controllers that request the same declaration share the cache.
//
// No cache exists for Secrets and ConfigMaps that users name. Controllers read them one by one through kube::Recorder.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kube/cache/cache.hpp"
#include "kube/object.hpp"
#include "slinky/names.hpp"
#include "slurm/model.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace slinky {

/// The declaration of a cache.
template <class Record>
struct CacheOf {
  const kube::Resource& resource;
  std::string_view label_selector = {};  ///< "" selects all objects.
  std::vector<std::pair<std::string_view, typename kube::Cache<Record>::IndexFunction>> indices = {};
};

/// A pointer to the declaration of a cache, for any type of record.
using AnyCacheOf = std::variant<const CacheOf<kube::Object>*, const CacheOf<kube::PodRecord>*,
                                const CacheOf<kube::SecretRecord>*, const CacheOf<kube::NodeRecord>*,
                                const CacheOf<kube::SchedulingPodRecord>*, const CacheOf<kube::SchedulingNodeRecord>*>;

/// kIndexInstance indexes pods, claims, and ControllerRevisions without an owner, by "ns/app/instance", e.g.
/// "default/slurmctld/demo". kIndexCluster indexes workers by "ns/cluster", e.g. "default/demo".
inline constexpr std::string_view kIndexInstance = "instance";
inline constexpr std::string_view kIndexCluster = "cluster";
/// Index of pods by the Kubernetes node on which they run.
inline constexpr std::string_view kIndexNode = "node";
/// Index of RestApis, NodeSets and LoginSets by the key ("ns/name") of the Controller that each object names.
inline constexpr std::string_view kIndexController = "controller";
/// Index of Controllers, SlurmQos and the other kinds in slurmdbd by the key ("ns/name") of the Accounting that each names.
inline constexpr std::string_view kIndexAccounting = "accounting";
/// Index of pods, ControllerRevisions and Tokens' Secrets by the uid of their owner.
inline constexpr std::string_view kIndexOwner = "owner";

/// Functions for kIndexController and kIndexAccounting.
std::vector<std::string> controller_of(const kube::Object& object);
std::vector<std::string> accounting_of(const kube::Object& object);

namespace caches {
// Our custom resources, without a selector.
inline const CacheOf<kube::Object> kControllers{resources::kController, "", {{kIndexAccounting, accounting_of}}};
inline const CacheOf<kube::Object> kRestApis{resources::kRestApi, "", {{kIndexController, controller_of}}};
inline const CacheOf<kube::Object> kNodeSets{resources::kNodeSet, "", {{kIndexController, controller_of}}};
inline const CacheOf<kube::Object> kLoginSets{resources::kLoginSet, "", {{kIndexController, controller_of}}};
inline const CacheOf<kube::Object> kAccountings{resources::kAccounting};
inline const CacheOf<kube::Object> kTokens{resources::kToken};
inline const CacheOf<kube::Object> kSlurmQos{resources::kSlurmQos, "", {{kIndexAccounting, accounting_of}}};
inline const CacheOf<kube::Object> kSlurmAccounts{resources::kSlurmAccount, "", {{kIndexAccounting, accounting_of}}};
inline const CacheOf<kube::Object> kSlurmUsers{resources::kSlurmUser, "", {{kIndexAccounting, accounting_of}}};
inline const CacheOf<kube::Object> kSlurmAssociations{resources::kSlurmAssociation, "", {{kIndexAccounting, accounting_of}}};
// Child objects of our resources, selected by the label app.kubernetes.io/name unless a comment says otherwise.
extern const CacheOf<kube::PodRecord> kPods;  ///< slurmctld, slurmdbd, its MariaDB, slurmrestd, login nodes and all workers.
extern const CacheOf<kube::Object> kServices, kConfigMaps, kStatefulSets, kDeployments, kPodDisruptionBudgets,
    kControllerRevisions;
/// The volume claims of slurmctld and of workers. slurmctld's claims match the selector because the StatefulSet controller
/// copies the labels of the StatefulSet's selector to them.
extern const CacheOf<kube::Object> kClaims;
/// The EndpointSlices that the operator created, not those that Kubernetes creates for Services.
extern const CacheOf<kube::Object> kEndpointSlices;
extern const CacheOf<kube::SecretRecord> kTokenSecrets;  ///< The Secrets that Tokens generate.
extern const CacheOf<kube::NodeRecord> kNodes;           ///< All Kubernetes nodes.
}  // namespace caches

std::string instance_key(std::string_view ns, std::string_view app, std::string_view instance);
/// Returns the key of the Controller that a RestApi, NodeSet or LoginSet names.
kube::Key controller_ref(const kube::Object& object);
/// Returns the key of the Accounting that a Controller, or an object of a kind in slurmdbd (SlurmQos and others), names. The
/// returned name is "" if the object names no Accounting.
kube::Key accounting_ref(const kube::Object& object);
/// Reports whether the desired state has changed: the spec, the finalizers, whether the object is being deleted, or its uid. A
/// change of the status does not count.
bool intent_changed(const kube::Object& before, const kube::Object& after);

/// Returns a function that lists the workers of a NodeSet from the cache `pods`.
std::function<std::vector<kube::PodPtr>(const kube::Object& nodeset)> workers_in(const kube::Cache<kube::PodRecord>& pods);

/// Returns the last snapshot of a cluster, or null if no slurmrestd is known for the cluster.
using SnapshotSource = std::function<slurm::SnapshotPtr(const slurm::ClusterKey&)>;

}  // namespace slinky
