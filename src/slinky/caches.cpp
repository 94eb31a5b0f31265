#include "slinky/caches.hpp"

#include "api/well_known.hpp"

namespace slinky {
namespace {

constexpr std::string_view kClaimSelector = "app.kubernetes.io/name in (slurmctld,slurmd)";
constexpr std::string_view kSliceSelector = "endpointslice.kubernetes.io/managed-by=slurm-operator";
constexpr std::string_view kTokenSelector = "app.kubernetes.io/name in (slurm-token)";

template <class Record>
std::vector<std::string> owner_of(const Record& record) {
  const kube::OwnerReference* owner = record.meta.controller_owner();
  return owner == nullptr ? std::vector<std::string>{} : std::vector{owner->uid};
}

std::vector<std::string> instance_of(const kube::PodRecord& pod) {
  return {instance_key(pod.meta.ns, pod.meta.label(api::kLabelName), pod.meta.label(api::kLabelInstance))};
}

std::vector<std::string> cluster_of(const kube::PodRecord& pod) {
  if (pod.meta.label(api::kLabelName) != kAppWorker) return {};
  return {cluster_key(pod.meta.ns, pod.meta.label(api::kLabelCluster))};
}

std::vector<std::string> node_of(const kube::PodRecord& pod) {
  return pod.node_name.empty() ? std::vector<std::string>{} : std::vector{pod.node_name};
}

std::vector<std::string> claim_instance(const kube::Object& claim) {
  return {instance_key(claim.meta.ns, claim.meta.label(api::kLabelName), claim.meta.label(api::kLabelInstance))};
}

/// Indexes revisions without a controller owner, which remain after the deletion of their NodeSet.
std::vector<std::string> ownerless_instance(const kube::Object& revision) {
  if (revision.meta.controller_owner() != nullptr) return {};
  return {instance_key(revision.meta.ns, revision.meta.label(api::kLabelName), revision.meta.label(api::kLabelInstance))};
}

}  // namespace

std::vector<std::string> controller_of(const kube::Object& object) {
  const kube::Key key = controller_ref(object);
  if (key.name.empty()) return {};
  return {cluster_key(key.ns, key.name)};
}

std::vector<std::string> accounting_of(const kube::Object& object) {
  const kube::Key key = accounting_ref(object);
  if (key.name.empty()) return {};
  return {key.str()};
}

namespace caches {
namespace kinds = kube::resources;
const CacheOf<kube::PodRecord> kPods{kinds::kPod,
                                     kChildSelector,
                                     {{kIndexOwner, owner_of<kube::PodRecord>},
                                      {kIndexInstance, instance_of},
                                      {kIndexCluster, cluster_of},
                                      {kIndexNode, node_of}}};
const CacheOf<kube::Object> kServices{kinds::kService, kChildSelector};
const CacheOf<kube::Object> kConfigMaps{kinds::kConfigMap, kChildSelector};
const CacheOf<kube::Object> kStatefulSets{kinds::kStatefulSet, kChildSelector};
const CacheOf<kube::Object> kDeployments{kinds::kDeployment, kChildSelector};
const CacheOf<kube::Object> kPodDisruptionBudgets{kinds::kPodDisruptionBudget, kChildSelector};
const CacheOf<kube::Object> kControllerRevisions{
    kinds::kControllerRevision, kChildSelector, {{kIndexOwner, owner_of<kube::Object>}, {kIndexInstance, ownerless_instance}}};
const CacheOf<kube::Object> kClaims{kinds::kPersistentVolumeClaim, kClaimSelector, {{kIndexInstance, claim_instance}}};
const CacheOf<kube::Object> kEndpointSlices{kinds::kEndpointSlice, kSliceSelector};
const CacheOf<kube::SecretRecord> kTokenSecrets{kinds::kSecret, kTokenSelector, {{kIndexOwner, owner_of<kube::SecretRecord>}}};
const CacheOf<kube::NodeRecord> kNodes{kinds::kNode};
}  // namespace caches

std::string instance_key(std::string_view ns, std::string_view app, std::string_view instance) {
  return std::string(ns) + "/" + std::string(app) + "/" + std::string(instance);
}

std::function<std::vector<kube::PodPtr>(const kube::Object& nodeset)> workers_in(const kube::Cache<kube::PodRecord>& pods) {
  return [&pods](const kube::Object& nodeset) {
    return pods.by_index(kIndexInstance, instance_key(nodeset.meta.ns, kAppWorker, nodeset.meta.name));
  };
}

kube::Key controller_ref(const kube::Object& object) {
  return {object.meta.ns, core::get_string(object.body, {"spec", "controllerRef", "name"})};
}

kube::Key accounting_ref(const kube::Object& object) {
  return {object.meta.ns, core::get_string(object.body, {"spec", "accountingRef", "name"})};
}

bool intent_changed(const kube::Object& before, const kube::Object& after) {
  return before.meta.generation != after.meta.generation || before.meta.terminating() != after.meta.terminating() ||
         before.meta.finalizers != after.meta.finalizers || before.meta.uid != after.meta.uid;
}

}  // namespace slinky
