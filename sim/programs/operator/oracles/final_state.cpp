#include "sim/programs/operator/oracles/final_state.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "api/well_known.hpp"
#include "kube/apply_helper.hpp"
#include "sim/programs/operator/oracles/objects.hpp"

namespace sim {
namespace {

using core::Json;

/// Removes all members that differ from one history to the next, at any depth.
void without_chance(Json& value) {
  static const std::set<std::string> kLeftOut{
      // Drawn or counted by the API server.
      "uid", "nodeSetUID", "resourceVersion", "generation", "observedGeneration", "managedFields", "restartCount",
      // Read from the clock.
      "creationTimestamp", std::string(api::kAnnotationNewestSince), "lastTransitionTime", "lastUpdateTime", "lastProbeTime",
      "startTime", "startedAt", "finishedAt",
      // Kubernetes nodes, addresses and volumes that happened to be free. The comments of Slurm nodes use "node".
      "nodeName", "node", "podIP", "podIPs", "hostIP", "hostIPs", "clusterIP", "clusterIPs", "volumeName", "containerID",
      // The number of these containers depends on how the rotation of a key went.
      "ephemeralContainers", "ephemeralContainerStatuses"};
  // A cluster's keys are random, and so are their digests and everything that contains the digests: only the presence counts.
  static const std::set<std::string> kDrawn{std::string(api::kAnnotationSlurmKeyHash),
                                            std::string(api::kAnnotationMadeWithKey),
                                            std::string(api::kAnnotationJwtKeyHash),
                                            std::string(api::kAnnotationSshHostKeysHash),
                                            "pod-template-hash",
                                            "currentRevision",
                                            "updateRevision"};
  if (value.is_object()) {
    std::erase_if(value.get_ref<Json::object_t&>(), [](const auto& entry) { return kLeftOut.contains(entry.first); });
    for (const auto& [key, child] : value.items()) {
      if (kDrawn.contains(key)) child = "(drawn)";
    }
  }
  if (value.is_structured()) {
    for (Json& child : value) without_chance(child);
  }
}

/// Returns an object's name, and the part of the object that must be equal. Sorts its conditions, because their order depends
/// on which of them was written first.
std::pair<std::string, Json> lasting(const std::string& table, const kube::Key& key, Json body) {
  without_chance(body);
  Json& meta = body["metadata"];
  std::string name = table + " " + key.str();
  const bool of_deployment = core::find(meta, {"labels", "pod-template-hash"}) != nullptr;
  if (of_deployment) {  // the names of ReplicaSets and of their pods are random
    name = table + " of " + label(body, api::kLabelName);
    for (const char* named : {"name", "generateName", "ownerReferences"}) meta.erase(named);
    if (body["spec"].contains("selector")) body["spec"].erase("selector");
  }
  if (table == "secrets" && body.contains("data")) {
    for (Json& value : body["data"]) value = "(drawn)";
    if (meta["annotations"].contains(api::kAnnotationDataHash))
      meta["annotations"][std::string(api::kAnnotationDataHash)] = "(drawn)";
  }
  const bool tells_keys = table == "configmaps" && meta["annotations"].contains(api::kAnnotationSlurmKeyHash);
  if (table == "statefulsets.apps" || table == "deployments.apps" || tells_keys)
    meta["annotations"][std::string(kube::kIntentHash)] = "(drawn)";
  // The number after the digest counts how often the operator made a kubelet refresh its volumes at once.
  const std::string refresh = annotation(body, api::kAnnotationConfigRefresh);
  if (!refresh.empty()) meta["annotations"][std::string(api::kAnnotationConfigRefresh)] = refresh.substr(0, refresh.find('.'));
  if (table == "pods" && !is_worker(body) && meta["labels"].contains(api::kLabelRevisionHash)) {
    meta["labels"][std::string(api::kLabelRevisionHash)] = "(drawn)";
  }
  if (core::find(body, {"status", "conditions"}) != nullptr) {
    Json& conditions = body["status"]["conditions"];
    std::sort(conditions.begin(), conditions.end(),
              [](const Json& a, const Json& b) { return text_at(a, {"type"}) < text_at(b, {"type"}); });
  }
  return {std::move(name), std::move(body)};
}

}  // namespace

Json final_state(const KubeApi& api, const SlurmSite& site) {
  Json out = Json::object();
  for (const std::string& table : api.store().tables()) {
    const bool about_time = table.starts_with("events") || table.starts_with("leases") || table.starts_with("endpointslices");
    if (about_time) continue;
    for (const auto& [key, stored] : api.store().all(table)) {
      auto [name, object] = lasting(table, key, stored->body);
      out[name] = std::move(object);
    }
  }
  for (const auto& [host, cluster] : site.clusters()) {
    const SimSlurm& slurm = *cluster->slurm;
    for (const auto& [name, node] : slurm.nodes()) {
      Json comment = core::parse_json(node.comment).value_or(Json(node.comment));
      without_chance(comment);
      out["slurm " + host + " " + name] = {{"state", slurm.state_words(node)}, {"reason", node.reason},
                                           {"comment", std::move(comment)},    {"extra", node.extra},
                                           {"features", node.features},        {"partitions", node.partitions}};
    }
    out["slurm " + host] = {{"configuration", slurm.configuration()}};
  }
  return out;
}

Json starts(const SlurmSite& site, const std::map<std::string, int>& made) {
  Json out = site.starts();
  for (const auto& [name, times] : made) out["pod " + name] = times;
  return out;
}

}  // namespace sim
