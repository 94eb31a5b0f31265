#include "sim/oracles/policies.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "api/well_known.hpp"
#include "cluster/names.hpp"
#include "kube/acts.hpp"
#include "sim/oracles/objects.hpp"

namespace sim {
namespace {

using core::Json;
namespace kinds = kube::resources;

/// It is being deleted, and waits for the operator.
bool ends(const Json& object, std::string_view finalizer) {
  return terminating(object) && kube::has_finalizer(object, finalizer);
}

bool owned_by(const Json& object, const std::string& uid) {
  const Json* owners = core::find(object, {"metadata", "ownerReferences"});
  return owners != nullptr &&
         std::any_of(owners->begin(), owners->end(), [&](const Json& owner) { return text_at(owner, {"uid"}) == uid; });
}

}  // namespace

Admission worker_policy() {
  return [](const AdmissionRequest& request) -> std::optional<Refusal> {
    if (request.operation != "DELETE" || !(request.resource == kinds::kPod) || request.before == nullptr) return {};
    const Json& pod = *request.before;
    if (!is_worker(pod)) return {};
    if (!request.user.ends_with(":generic-garbage-collector") && !request.user.ends_with(":namespace-controller")) return {};
    if (!annotation(pod, api::kAnnotationDeletionEvidence).empty() || terminating(pod) || ended(pod) || never_started(pod))
      return {};
    return make_status(403, "Forbidden", "worker " + request.key.str() + " may run jobs: slurm-operator has not released it",
                       &request.resource, request.key.name);
  };
}

Admission busy_policy() {
  return [](const AdmissionRequest& request) -> std::optional<Refusal> {
    if (request.operation != "DELETE" || !(request.resource == kinds::kPod) || request.before == nullptr) return {};
    const Json& pod = *request.before;
    if (request.user != "system:kube-scheduler" || !is_worker(pod) || label(pod, api::kLabelPodBusy) != "true") return {};
    const bool released = annotation(pod, api::kAnnotationPodRelease) == "true" ||
                          core::find(pod, {"metadata", "annotations", api::kAnnotationDeletionEvidence}) != nullptr;
    if (released || terminating(pod) || ended(pod)) return {};
    return make_status(403, "Forbidden", "worker " + request.key.str() + " runs jobs", &request.resource, request.key.name);
  };
}

Admission cluster_policy(const KubeApi& api) {
  return [&api](const AdmissionRequest& request) -> std::optional<Refusal> {
    if (request.operation != "DELETE" || request.before == nullptr || terminating(*request.before)) return {};
    const bool cleaner = request.user.ends_with(":namespace-controller");
    if (!cleaner && !request.user.ends_with(":generic-garbage-collector")) return {};
    const bool restapi = request.resource == op::resources::kRestApi;
    const std::string app = label(*request.before, api::kLabelName);
    if (!restapi) {
      if (app != op::kAppController && app != op::kAppRestApi && app != op::kAppWorker) return {};
      if (request.resource == kinds::kPod && app == op::kAppWorker) return {};
      static const std::set<std::string> kept{"Pod",    "Service",     "Endpoints",  "EndpointSlice", "ConfigMap",
                                              "Secret", "StatefulSet", "Deployment", "ReplicaSet"};
      if (!kept.contains(request.resource.kind)) return {};
    }
    const auto refuse = [&](const std::string& why) {
      return make_status(403, "Forbidden", why, &request.resource, request.key.name);
    };
    const Json* space = api.peek(kinds::kNamespace, {"", request.key.ns});
    const bool namespace_ends = cleaner || (space != nullptr && terminating(*space));
    for (const auto& [key, stored] : api.store().all(table_name(op::resources::kController))) {
      if (key.ns != request.key.ns || text_at(stored->body, {"spec", "deletionPolicy"}) != "Drain") continue;
      if (!namespace_ends && (restapi || !ends(stored->body, api::kFinalizerController))) continue;
      return refuse("Controller " + key.str() + " has deletionPolicy: Drain, and its workers still exist");
    }
    if (namespace_ends || app != op::kAppRestApi ||
        (request.resource.kind != "Service" && request.resource.kind != "Deployment"))
      return {};
    for (const auto& [key, stored] : api.store().all(table_name(op::resources::kRestApi))) {
      if (key.ns != request.key.ns || !ends(stored->body, api::kFinalizerRestApi)) continue;
      if (!owned_by(*request.before, text_at(stored->body, {"metadata", "uid"}))) continue;
      return refuse("RestApi " + key.str() + " serves NodeSets that are being drained");
    }
    return {};
  };
}

}  // namespace sim
