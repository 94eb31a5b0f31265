// Handles POSTs to subresources: the eviction of a pod, and a token of a ServiceAccount.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/hash.hpp"
#include "sim/kube/refusals.hpp"

namespace sim {

using core::Json;

ApiResult<Json> KubeApi::evict(const kube::Key& pod, const Deletion& deletion, const Caller& caller) {
  const auto& resource = kube::resources::kPod;
  const StoredPtr stored = store_.find("pods", pod);
  if (!stored) return std::unexpected(not_found(resource, pod.name));
  const bool pending = core::get_string(stored->body, {"status", "phase"}) == "Pending";
  const bool counted = !terminating(stored->body) && !ended(stored->body) && !pending;
  if (counted) {
    for (const auto& [key, budget] : store_.all("poddisruptionbudgets.policy")) {
      if (key.ns != pod.ns) continue;
      const Json* labels = core::find(budget->body, {"spec", "selector", "matchLabels"});
      if (labels == nullptr || labels->empty() ||
          !core::contains(stored->body["metadata"].value("labels", Json::object()), *labels))
        continue;
      const auto count = [&](const char* name) { return core::get_int(budget->body, {"status", name}); };
      // A budget does not protect an unready pod if the budget's policy is AlwaysAllow, or if enough other pods are ready.
      if (!is_ready(stored->body) && (core::get_string(budget->body, {"spec", "unhealthyPodEvictionPolicy"}) == "AlwaysAllow" ||
                                      (count("currentHealthy") >= count("desiredHealthy") && count("desiredHealthy") > 0)))
        continue;
      const auto allowed = count("disruptionsAllowed");
      if (allowed <= 0) {
        Refusal status =
            make_status(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.");
        status["details"]["causes"] =
            Json::array({Json{{"reason", "DisruptionBudget"},
                              {"message", fmt::format("The disruption budget {} needs {} healthy pods and has {} currently",
                                                      key.name, count("desiredHealthy"), count("currentHealthy"))}}});
        return std::unexpected(status);
      }
      modify(
          kube::resources::kPodDisruptionBudget, key, [&](Json& b) { b["status"]["disruptionsAllowed"] = allowed - 1; }, {},
          "status");
    }
  }
  const auto meets = [&](const std::string& wanted, const char* field) {
    return wanted.empty() || wanted == core::get_string(stored->body, {"metadata", field});
  };
  Deletion last = deletion;
  if (meets(deletion.uid, "uid") && meets(deletion.resource_version, "resourceVersion")) {
    modify(
        resource, pod, [&](Json& p) { disrupt(p, "EvictionByEvictionAPI", "Eviction API: evicting"); }, caller, "status");
    last.resource_version.clear();  // the condition changed the version, which the caller does not know
  }
  return remove(resource, pod, last, caller);
}

ApiResult<Json> KubeApi::request_token(const kube::Key& account, Json request) {
  const kube::Resource& resource = kube::resources::kServiceAccount;
  const kube::Resource kind{"authentication.k8s.io", "v1", "TokenRequest", "tokenrequests", true};
  const std::string name_in_body = core::get_string(request, {"metadata", "name"}, account.name);
  if (name_in_body != account.name) {
    return std::unexpected(
        invalid(kind, account.name,
                {{"metadata.name", "FieldValueInvalid",
                  fmt::format("Invalid value: \"{}\": must match the service account name if specified", name_in_body)}}));
  }
  const StoredPtr stored = store_.find("serviceaccounts", account);
  if (!stored) return std::unexpected(not_found(resource, account.name));
  Json& spec = request["spec"];
  if (!spec.is_object()) spec = Json::object();
  const long long seconds = core::get_int(spec, {"expirationSeconds"}, 3600);
  if (seconds < 600) {
    return std::unexpected(
        invalid(kind, "",
                {{"spec.expirationSeconds", "FieldValueInvalid",
                  fmt::format("Invalid value: {}: may not specify a duration less than 10 minutes", seconds)}}));
  }
  if (const Json* bound = core::find(spec, {"boundObjectRef"}); bound != nullptr && bound->is_object()) {
    const std::string of_kind = core::get_string(*bound, {"kind"});
    const std::string name = core::get_string(*bound, {"name"});
    if (of_kind != "Pod" && of_kind != "Secret")
      return std::unexpected(bad_request("cannot bind token to object of type /v1, Kind=" + of_kind));
    const auto& to = of_kind == "Pod" ? kube::resources::kPod : kube::resources::kSecret;
    const Json* object = peek(to, {account.ns, name});
    if (object == nullptr) return std::unexpected(not_found(to, name));
    const std::string uid = core::get_string(*bound, {"uid"});
    const std::string found = core::get_string(*object, {"metadata", "uid"});
    if (!uid.empty() && uid != found) {
      return std::unexpected(delete_conflict(
          to, name,
          fmt::format("the UID in the bound object reference ({}) does not match the UID in record ({}). The object might have "
                      "been deleted and then recreated",
                      uid, found)));
    }
  }
  spec["expirationSeconds"] = seconds;
  if (!spec.contains("audiences") || spec["audiences"].empty()) spec["audiences"] = {"https://kubernetes.default.svc"};
  request["kind"] = "TokenRequest";
  request["apiVersion"] = "authentication.k8s.io/v1";
  request["metadata"] = {{"name", account.name}, {"namespace", account.ns}, {"creationTimestamp", now()}};
  request["status"] = {{"token", "sim." + core::sha256_hex(new_uid())},
                       {"expirationTimestamp", core::format_rfc3339(loop_.clock().wall() + std::chrono::seconds(seconds))}};
  return request;
}

void KubeApi::disrupt(Json& pod, const char* reason, const char* message) const {
  Json& conditions = pod["status"]["conditions"];
  if (!conditions.is_array()) conditions = Json::array();
  std::erase_if(conditions.get_ref<Json::array_t&>(), [](const Json& c) { return c["type"] == "DisruptionTarget"; });
  conditions.push_back({{"type", "DisruptionTarget"},
                        {"status", "True"},
                        {"reason", reason},
                        {"message", message},
                        {"lastTransitionTime", now()},
                        {"lastProbeTime", nullptr}});
}

}  // namespace sim
