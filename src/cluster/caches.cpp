#include "cluster/caches.hpp"

#include "api/well_known.hpp"
#include "cluster/names.hpp"

namespace op {
namespace {

std::vector<std::string> controller_of(const kube::Object& object) {
  const std::string name = core::get_string(object.body, {"spec", "controllerRef", "name"});
  if (name.empty()) return {};
  return {cluster_key(object.meta.ns, name)};
}

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

/// Revisions whose NodeSet went without them.
std::vector<std::string> ownerless_instance(const kube::Object& revision) {
  if (revision.meta.controller_owner() != nullptr) return {};
  return {instance_key(revision.meta.ns, revision.meta.label(api::kLabelName), revision.meta.label(api::kLabelInstance))};
}

}  // namespace

std::string instance_key(std::string_view ns, std::string_view app, std::string_view instance) {
  return std::string(ns) + "/" + std::string(app) + "/" + std::string(instance);
}

void add_indices(Caches& caches) {
  caches.restapis.add_index(std::string(kIndexController), controller_of);
  caches.nodesets.add_index(std::string(kIndexController), controller_of);
  caches.controller_revisions.add_index(std::string(kIndexOwner), owner_of<kube::Object>);
  caches.controller_revisions.add_index(std::string(kIndexInstance), ownerless_instance);
  caches.token_secrets.add_index(std::string(kIndexOwner), owner_of<kube::SecretRecord>);
  caches.pods.add_index(std::string(kIndexOwner), owner_of<kube::PodRecord>);
  caches.pods.add_index(std::string(kIndexInstance), instance_of);
  caches.pods.add_index(std::string(kIndexCluster), cluster_of);
}

}  // namespace op
