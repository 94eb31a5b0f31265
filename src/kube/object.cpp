#include "kube/object.hpp"

#include <algorithm>

#include "core/percent.hpp"

namespace kube {
namespace {

/// Encodes a text as one segment of a path. The API server decodes the path once before it splits it, and proxies follow "..".
/// So "/", "." and ".." are encoded twice: the API server then sees a name with a "%", which no object can have.
std::string segment(std::string_view text) {
  if (text == "." || text == "..") return text == "." ? "%252E" : "%252E%252E";
  std::string out;
  for (const char c : text) out += c == '/' ? std::string("%252F") : core::percent_encode({&c, 1}, ":");
  return out;
}

}  // namespace

namespace resources {
const Resource kPod{"", "v1", "Pod", "pods", true};
const Resource kService{"", "v1", "Service", "services", true};
const Resource kConfigMap{"", "v1", "ConfigMap", "configmaps", true};
const Resource kSecret{"", "v1", "Secret", "secrets", true};
const Resource kNode{"", "v1", "Node", "nodes", false};
const Resource kServiceAccount{"", "v1", "ServiceAccount", "serviceaccounts", true};
const Resource kNamespace{"", "v1", "Namespace", "namespaces", false};
const Resource kPersistentVolumeClaim{"", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", true};
const Resource kStatefulSet{"apps", "v1", "StatefulSet", "statefulsets", true};
const Resource kDeployment{"apps", "v1", "Deployment", "deployments", true};
const Resource kControllerRevision{"apps", "v1", "ControllerRevision", "controllerrevisions", true};
const Resource kLease{"coordination.k8s.io", "v1", "Lease", "leases", true};
const Resource kCustomResourceDefinition{"apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions",
                                         false};
const Resource kEndpointSlice{"discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", true};
const Resource kEvent{"events.k8s.io", "v1", "Event", "events", true};
const Resource kPodDisruptionBudget{"policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", true};
}  // namespace resources

std::string Resource::path(std::string_view ns, std::string_view name, std::string_view subresource) const {
  std::string result = group.empty() ? "/api/" : "/apis/" + segment(group) + "/";
  result.append(segment(version));
  if (namespaced && !ns.empty()) result.append("/namespaces/").append(segment(ns));
  result.append("/").append(segment(plural));
  if (!name.empty()) result.append("/").append(segment(name));
  if (!subresource.empty()) result.append("/").append(segment(subresource));
  return result;
}

const OwnerReference* ObjectMeta::controller_owner() const {
  const auto it = std::ranges::find_if(owners, &OwnerReference::controller);
  return it == owners.end() ? nullptr : &*it;
}

std::string_view ObjectMeta::label(std::string_view of) const {
  const auto it = labels.find(of);
  return it == labels.end() ? std::string_view{} : std::string_view{it->second};
}

std::string_view ObjectMeta::annotation(std::string_view of) const {
  const auto it = annotations.find(of);
  return it == annotations.end() ? std::string_view{} : std::string_view{it->second};
}

namespace {

StringMap string_map(const core::Json* json) {
  StringMap result;
  if (json == nullptr || !json->is_object()) return result;
  for (const auto& [key, value] : json->items()) {
    if (value.is_string()) result.emplace(key, value.get<std::string>());
  }
  return result;
}

}  // namespace

Key key_of(const core::Json& object) {
  return {core::get_string(object, {"metadata", "namespace"}), core::get_string(object, {"metadata", "name"})};
}

ObjectMeta parse_meta(const core::Json& object) {
  ObjectMeta meta;
  meta.ns = core::get_string(object, {"metadata", "namespace"});
  meta.name = core::get_string(object, {"metadata", "name"});
  meta.uid = core::get_string(object, {"metadata", "uid"});
  meta.resource_version = core::get_string(object, {"metadata", "resourceVersion"});
  meta.generation = core::get_int(object, {"metadata", "generation"});
  meta.labels = string_map(core::find(object, {"metadata", "labels"}));
  meta.annotations = string_map(core::find(object, {"metadata", "annotations"}));
  if (const auto* owners = core::find(object, {"metadata", "ownerReferences"}); owners != nullptr && owners->is_array()) {
    for (const auto& owner : *owners) {
      meta.owners.push_back({core::get_string(owner, {"apiVersion"}), core::get_string(owner, {"kind"}),
                             core::get_string(owner, {"name"}), core::get_string(owner, {"uid"}),
                             core::get_bool(owner, {"controller"})});
    }
  }
  if (const auto* list = core::find(object, {"metadata", "finalizers"}); list != nullptr && list->is_array()) {
    for (const auto& finalizer : *list) {
      if (finalizer.is_string()) meta.finalizers.push_back(finalizer.get<std::string>());
    }
  }
  if (const auto at = core::parse_rfc3339(core::get_string(object, {"metadata", "creationTimestamp"}))) meta.created = *at;
  const std::string deletion = core::get_string(object, {"metadata", "deletionTimestamp"});
  if (const auto at = core::parse_rfc3339(deletion)) meta.deletion_timestamp = *at;
  return meta;
}

const PodCondition* PodRecord::condition(std::string_view type) const {
  const auto it = std::ranges::find(conditions, type, &PodCondition::type);
  return it == conditions.end() ? nullptr : &*it;
}

bool PodRecord::mounts_secret(std::string_view name) const {
  return std::ranges::find(secrets, name) != secrets.end();
}

bool PodRecord::ready() const {
  const PodCondition* ready_condition = condition("Ready");
  return ready_condition != nullptr && ready_condition->status == "True";
}

core::Json meta_json(const Key& key, const StringMap& labels, const StringMap& annotations) {
  core::Json meta = {{"name", key.name}};
  if (!key.ns.empty()) meta["namespace"] = key.ns;
  if (!labels.empty()) meta["labels"] = labels;
  if (!annotations.empty()) meta["annotations"] = annotations;
  return meta;
}

core::Json owner_reference_json(const Resource& resource, const ObjectMeta& owner) {
  return {{"apiVersion", resource.api_version()},
          {"kind", resource.kind},
          {"name", owner.name},
          {"uid", owner.uid},
          {"controller", true},
          {"blockOwnerDeletion", true}};
}

bool rv_at_least(std::string_view have, std::string_view want) {
  if (want.empty()) return true;
  if (have.size() != want.size()) return have.size() > want.size();
  return have >= want;
}

}  // namespace kube
