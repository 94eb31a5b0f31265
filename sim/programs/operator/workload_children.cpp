// The part of the workload that edits and deletes the objects that the operator created.
#include <algorithm>
#include <utility>

#include "api/well_known.hpp"
#include "sim/programs/operator/workload.hpp"
#include "sim/programs/operator/workload_parts.hpp"
#include "slinky/names.hpp"

namespace sim {

using core::Duration;
using core::Json;
namespace kinds = kube::resources;

namespace {

/// Returns the kinds of children to harm: all but pods. Generated keys are not harmed: a new key would not repair the damage.
const std::vector<kube::Resource>& child_kinds() {
  static const std::vector<kube::Resource> kAll{kinds::kService,    kinds::kConfigMap,           kinds::kStatefulSet,
                                                kinds::kDeployment, kinds::kPodDisruptionBudget, kinds::kControllerRevision,
                                                kinds::kSecret};
  return kAll;
}

/// Returns a patch that contradicts what the operator wants; null if there is none for the kind.
Json stray_edit(const kube::Resource& kind, const std::string& name) {
  if (kind == kinds::kService) return {{"spec", {{"selector", {{std::string(api::kLabelName), "stray"}}}}}};
  if (kind == kinds::kConfigMap && name == slinky::ssh_config_name(kLogin)) return {{"data", {{"sshd_config", "stray\n"}}}};
  if (kind == kinds::kConfigMap) return {{"data", {{"slurm.conf", "ClusterName=stray\n"}}}};
  if (kind == kinds::kStatefulSet || kind == kinds::kDeployment) return {{"spec", {{"replicas", 0}}}};
  if (kind == kinds::kPodDisruptionBudget) return {{"spec", {{"minAvailable", nullptr}, {"maxUnavailable", 2}}}};
  return nullptr;
}

/// Returns the parts of a child that the operator must restore, without random values. Null if the child does not exist or is
/// being deleted.
Json wished_of(const kube::Resource& kind, const Json* child) {
  if (child == nullptr || core::find(*child, {"metadata", "deletionTimestamp"}) != nullptr) return nullptr;
  Json out{{"labels", (*child)["metadata"].value("labels", Json())}, {"spec", child->value("spec", Json::object())}};
  // Parts that an earlier template left, and marks of restarts, are allowed to disappear.
  if (out["spec"].contains("template")) return {{"labels", out["labels"]}, {"replicas", out["spec"]["replicas"]}};
  for (const char* drawn : {"clusterIP", "clusterIPs"}) out["spec"].erase(drawn);
  if (!child->contains("data")) return out;
  out["data"] = (*child)["data"];
  for (Json& value : out["data"]) {
    if (kind == kinds::kSecret) value = "(drawn)";
  }
  // If sshd is not enabled, the revision is allowed to contain the ssh settings of any time.
  if (kind == kinds::kControllerRevision && !core::get_bool(out, {"data", "spec", "ssh", "enabled"})) {
    out["data"]["spec"].erase("ssh");
  }
  return out;
}

std::int64_t revision_of(const Json& object) {
  return core::get_int(object, {"revision"});
}

}  // namespace

/// Reports whether the Secret with the key is gone, or is younger than the copy, for example because it was made from the copy.
bool OperatorWorkload::key_is_newer(const Json& copy) const {
  const Json* key = world_.find(kinds::kSecret, slinky::generated_slurm_key_name(World::kCluster));
  const auto made = [](const Json& object) { return core::get_string(object, {"metadata", "creationTimestamp"}); };
  return key == nullptr || made(*key) > made(copy);
}

std::vector<std::string> OperatorWorkload::children(const kube::Resource& kind) const {
  std::vector<std::string> out;
  std::map<std::string, std::pair<std::int64_t, std::string>> newest;  // only the ControllerRevision in use is created again
  for (const std::string& name : world_.names(kind)) {
    const Json& object = *world_.find(kind, name);
    const Json* owners = core::find(object, {"metadata", "ownerReferences"});
    if (owners == nullptr || owners->empty()) continue;
    if (!core::get_string(owners->front(), {"apiVersion"}).starts_with(api::kGroup)) continue;
    // If users change the key, or create its Secret again, the old value is unknown.
    if (name == slinky::keyring_name(World::kCluster) && (own_keys_ || key_is_newer(object))) continue;
    if (!(kind == kinds::kControllerRevision)) {
      out.push_back(name);
      continue;
    }
    auto& best = newest[core::get_string(owners->front(), {"uid"})];
    best = std::max(best, std::pair(revision_of(object), name));
  }
  for (const auto& [owner, best] : newest) out.push_back(best.second);
  return out;
}

void OperatorWorkload::harm_child(const kube::Resource& kind) {
  const std::string name = some(children(kind));
  if (name.empty()) return;
  const Json edit = stray_edit(kind, name);
  if (!edit.is_null() && random_.chance(0.5)) return world_.merge(kind, name, edit);
  world_.remove(kind, name, random_.chance(0.7) ? "Background" : "Foreground");
}

std::vector<std::string> OperatorWorkload::harm_one_by_one() {
  // No watch is ever interrupted for longer than this.
  constexpr Duration kNoticed{60000};
  for (const kube::Resource& kind : child_kinds()) {
    std::map<std::string, Json> before;
    for (const std::string& name : children(kind)) before[name] = wished_of(kind, world_.find(kind, name));
    harm_child(kind);
    const auto restored = [&] {
      return std::ranges::all_of(before,
                                 [&](const auto& was) { return wished_of(kind, world_.find(kind, was.first)) == was.second; });
    };
    if (!world_.loop().run_until(restored, kNoticed)) {
      std::vector<std::string> out;
      for (const auto& [name, was] : before) {
        differences(was, wished_of(kind, world_.find(kind, name)), kind.kind + " " + name, out);
      }
      return out;
    }
    if (std::vector<std::string> unmet = world_.settle(kSettle); !unmet.empty()) return unmet;
  }
  return {};
}

void OperatorWorkload::fill_child_actions() {
  actions_.push_back({3, [this] { harm_child(child_kinds()[random_.below(child_kinds().size())]); }});
}

/// Takes care of workers without a NodeSet: creates a NodeSet with the name of the former NodeSet, which adopts the workers. If
/// the Controller is being deleted, deletes the workers, because nobody else would.
bool OperatorWorkload::look_after_orphans() {
  bool adopted = false;
  const Json* cluster = world_.find(slinky::resources::kController, World::kCluster);
  const bool ends = cluster != nullptr && core::find(*cluster, {"metadata", "deletionTimestamp"}) != nullptr;
  for (const std::string& name : world_.workers()) {
    const Json& pod = *world_.find(kinds::kPod, name);
    if (core::find(pod, {"metadata", "ownerReferences"}) != nullptr) continue;
    const std::string nodeset = core::get_string(pod, {"metadata", "labels", api::kLabelInstance});
    if (ends) {
      world_.remove(kinds::kPod, name);
    } else if (world_.find(slinky::resources::kNodeSet, nodeset) == nullptr) {
      helped_ = adopted = true;
      world_.apply(nodeset_json(nodeset, 2));
    }
  }
  return adopted;
}

}  // namespace sim
