#include "sim/programs/operator/oracles/claims.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/well_known.hpp"
#include "kube/acts.hpp"
#include "sim/programs/operator/oracles/looks.hpp"
#include "sim/programs/operator/oracles/objects.hpp"
#include "slinky/names.hpp"

namespace sim {

using core::Json;
namespace res = kube::resources;

namespace {

/// Returns the claims that a pod mounts.
std::vector<std::string> claims_of(const Json& pod) {
  std::vector<std::string> out;
  for (const Json& volume : pod["spec"].value("volumes", Json::array())) {
    std::string name = text_at(volume, {"persistentVolumeClaim", "claimName"});
    if (!name.empty()) out.push_back(std::move(name));
  }
  return out;
}

/// Reports whether the operator has marked the claim for deletion together with that pod.
bool given_up_with(const Json& claim, const std::string& pod_uid) {
  return !pod_uid.empty() && text_at(claim, {"metadata", "annotations", std::string(api::kAnnotationScaledIn)}) == pod_uid;
}

}  // namespace

ClaimOracle::ClaimOracle(core::Loop& loop, KubeApi& api, Tell violation)
    : loop_(loop), api_(api), violation_(std::move(violation)) {
  listen();
}

void ClaimOracle::listen() {
  api_.store().listen([this](const std::string& table, const ChangePtr& change) {
    const Json& body = change->object->body;
    const bool gone = change->type == Change::Type::kDeleted;
    if (table == table_name(slinky::resources::kNodeSet) && !gone) note_nodeset(body);
    if (table == "pods" && is_worker(body)) gone ? note_gone(body) : note_worker(body, change->type == Change::Type::kAdded);
    // No user deletes claims of workers here: either the operator does, or Kubernetes deletes them with their owner. A claim
    // disappears a moment later, when Kubernetes has seen that no pod uses the claim.
    if (table != "persistentvolumeclaims" || label(body, api::kLabelName) != slinky::kAppWorker) return;
    if ((gone || terminating(body)) && deleted_.insert(text_at(body, {"metadata", "uid"})).second) judge(body);
  });
}

void ClaimOracle::note_nodeset(const Json& nodeset) {
  if (terminating(nodeset) && kube::has_finalizer(nodeset, "orphan")) alone_.insert(text_at(nodeset, {"metadata", "uid"}));
  const auto deletes = [&](const char* when) {
    return text_at(nodeset, {"spec", "persistentVolumeClaimRetentionPolicy", when}) == "Delete";
  };
  wishes_[text_at(nodeset, {"metadata", "uid"})].push_back(
      {loop_.clock().mono(), core::get_int(nodeset, {"spec", "replicas"}, 1), deletes("whenScaled"), deletes("whenDeleted")});
}

std::vector<ClaimOracle::Wish> ClaimOracle::lately(const std::string& uid) const {
  std::vector<Wish> out;
  const auto found = wishes_.find(uid);
  if (found == wishes_.end()) return out;
  for (auto it = found->second.rbegin(); it != found->second.rend(); ++it) {
    out.push_back(*it);
    if (loop_.clock().mono() - it->since > kLookAndWrite) break;
  }
  return out;
}

void ClaimOracle::note_worker(const Json& pod, bool made) {
  const kube::Key key{namespace_of(pod), name_of(pod)};
  if (made) {
    for (const std::string& claim : claims_of(pod)) {
      const auto collected = collected_.find({key.ns, claim});
      const bool unheard = collected != collected_.end() && collected->second.first == owner_uid(pod, "NodeSet") &&
                           loop_.clock().mono() - collected->second.second <= kLookAndWrite;
      if (api_.peek(res::kPersistentVolumeClaim, {key.ns, claim}) == nullptr && !unheard)
        violation_("worker " + key.str() + " is made before its claim " + claim);
    }
    scaled_in_.erase(key);
    vacancies_.erase(key);
    return;
  }
  if (!terminating(pod) || scaled_in_.contains(key)) return;
  const core::MonoTime now = loop_.clock().mono();
  const std::string owner = owner_uid(pod, "NodeSet");
  // A worker that is deleted for an update, or by somebody else, keeps its claims and reserves its ordinal for its successor.
  std::int64_t have = 1;
  for (const auto& [other, stored] : api_.store().all("pods")) {
    const Json& body = stored->body;
    if (other == key || !is_worker(body) || ended(body) || owner_uid(body, "NodeSet") != owner) continue;
    if (!terminating(body) || !goes_for_good(body)) ++have;
  }
  for (const auto& [other, vacancy] : vacancies_) have += vacancy.first == owner && now - vacancy.second <= kLookAndWrite;
  const std::vector<Wish> wishes = lately(owner);
  scaled_in_[key] = std::ranges::any_of(wishes, [&](const Wish& wish) { return wish.replicas < have; });
}

void ClaimOracle::note_gone(const Json& pod) {
  const std::string owner = owner_uid(pod, "NodeSet");
  if (!owner.empty() && !goes_for_good(pod)) vacancies_[{namespace_of(pod), name_of(pod)}] = {owner, loop_.clock().mono()};
}

/// Reports whether the operator has marked a claim of the worker for deletion with the worker, or a claim is already gone.
bool ClaimOracle::goes_for_good(const Json& pod) const {
  const std::vector<std::string> claims = claims_of(pod);
  return std::ranges::any_of(claims, [&](const std::string& name) {
    const Json* claim = api_.peek(res::kPersistentVolumeClaim, {namespace_of(pod), name});
    return claim == nullptr || given_up_with(*claim, text_at(pod, {"metadata", "uid"}));
  });
}

/// Checks the deletion of a claim by Kubernetes, which follows from the deletion of the claim's owner.
void ClaimOracle::judge_garbage(const kube::Key& key, const std::string& owner) {
  collected_[key] = {owner, loop_.clock().mono()};
  if (alone_.contains(owner)) return violation_("claim " + key.str() + " is deleted, though its NodeSet went alone");
  if (std::ranges::none_of(lately(owner), &Wish::when_deleted))
    violation_("claim " + key.str() + " is deleted with its NodeSet, against its retention policy");
}

void ClaimOracle::judge(const Json& claim) {
  const kube::Key key{namespace_of(claim), name_of(claim)};
  // The user deleted the namespace, with everything in it.
  const Json* space = api_.peek(res::kNamespace, {"", key.ns});
  if (space == nullptr || terminating(*space)) return;
  const Json* nodeset = api_.peek(slinky::resources::kNodeSet, {key.ns, label(claim, api::kLabelInstance)});
  const std::string owner = owner_uid(claim, "NodeSet");
  const bool serves = nodeset != nullptr && !terminating(*nodeset) && text_at(*nodeset, {"metadata", "uid"}) == owner;
  if (!owner.empty() && !serves) return judge_garbage(key, owner);
  for (const auto& [pod, stored] : api_.store().all("pods")) {
    const std::vector<std::string> used = claims_of(stored->body);
    if (pod.ns == key.ns && !ended(stored->body) && std::ranges::find(used, key.name) != used.end())
      violation_("claim " + key.str() + " is deleted under pod " + pod.str());
  }
  if (nodeset == nullptr) return violation_("claim " + key.str() + " is deleted, and its NodeSet is gone");
  const std::vector<Wish> wishes = lately(text_at(*nodeset, {"metadata", "uid"}));
  if (std::ranges::none_of(wishes, &Wish::when_scaled))
    return violation_("claim " + key.str() + " is deleted against its NodeSet's retention policy");
  if (text_at(claim, {"metadata", "annotations", std::string(api::kAnnotationScaledIn)}).empty())
    return violation_("claim " + key.str() + " is deleted, and was not given up before its worker");
  const auto worker = scaled_in_.find({key.ns, label(claim, api::kLabelPodName)});
  if (worker == scaled_in_.end() || !worker->second)
    violation_("claim " + key.str() + " is deleted, though its worker was not scaled in");
}

}  // namespace sim
