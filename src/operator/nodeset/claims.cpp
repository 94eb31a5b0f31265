// Manages the PersistentVolumeClaims of workers. The claims are created from spec.volumeClaimTemplates, kept for the next
// worker of the same name, and deleted only if spec.persistentVolumeClaimRetentionPolicy is Delete.
//
// No pod owns a claim, because Kubernetes' garbage collector would also delete the claim of a pod that is replaced. A claim
// that is to be deleted with its worker is marked before the pod is deleted. The claim is deleted once the pod is gone, unless
// a worker of that name is wanted again by then.
//
// The NodeSet owns the claims that are to be deleted with the NodeSet. Kubernetes deletes these claims after the NodeSet. If
// the NodeSet is deleted with --cascade=orphan, Kubernetes first removes the owner reference. So a claim without the reference
// gets it back only after the API server has confirmed that the NodeSet is not being deleted.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "api/well_known.hpp"
#include "core/hash.hpp"
#include "core/hostlist.hpp"
#include "core/quantity.hpp"
#include "kube/acts.hpp"
#include "operator/common/events.hpp"
#include "operator/common/slinky.hpp"
#include "operator/nodeset/build_worker.hpp"
#include "operator/nodeset/parts.hpp"
#include "slinky/worker_names.hpp"

namespace op::nodeset {
namespace {

using core::Json;

/// The operator reports a claim that Kubernetes has not bound to a volume after this time.
constexpr core::Duration kBinds{15000};
/// The time until the events about a claim are read again. After users have removed one cause, the events might show another.
constexpr core::Duration kEventsAgain{60000};
constexpr core::Duration kStopAgain{10000};

const Json& templates(const View& view) {
  return view.in.nodeset.spec.volume_claim_templates;
}

plan::StepId id_of(const plan::StepId& kind, const View& view, const std::string& claim) {
  return kind.of(view.in.meta().ns + "/" + claim);
}

const kube::Object* find_claim(const View& view, const std::string& name) {
  const auto found = view.in.claims.find(name);
  return found == view.in.claims.end() ? nullptr : found->second.get();
}

/// Returns the pod of that name, or null. Includes pods that are to be adopted or that the operator does not manage.
const kube::PodRecord* find_pod(const View& view, std::string_view name) {
  for (const auto* pods : {&view.in.pods, &view.in.orphans, &view.in.unmanaged}) {
    const auto found = std::ranges::find_if(*pods, [&](const kube::PodPtr& pod) { return pod->meta.name == name; });
    if (found != pods->end()) return found->get();
  }
  return nullptr;
}

/// Returns the name of the pod for which the claim was made, parsed from the claim's name. "": no template of ours gives such a
/// name.
std::string pod_named_by(const View& view, std::string_view claim) {
  for (const Json& one : templates(view)) {
    const std::string prefix = claim_name(one, "");
    if (claim.starts_with(prefix) && claim.substr(prefix.size()).starts_with(view.in.meta().name + "-"))
      return std::string(claim.substr(prefix.size()));
  }
  return {};
}

bool is_labelled(const View& view, const kube::Object& claim) {
  return claim.meta.label(api::kLabelName) == kAppWorker && claim.meta.label(api::kLabelInstance) == view.in.meta().name;
}

/// True if the owner is our NodeSet or one of the known pods. Another operator makes pods the owners of claims.
bool is_our_owner(const View& view, const kube::OwnerReference& owner) {
  if (owner.uid == view.in.meta().uid) return true;
  const kube::PodRecord* pod = owner.kind == kube::resources::kPod.kind ? find_pod(view, owner.name) : nullptr;
  return pod != nullptr && pod->meta.uid == owner.uid;
}

bool has_other_owner(const View& view, const kube::Object& claim) {
  return !std::ranges::all_of(claim.meta.owners, [&](const kube::OwnerReference& owner) { return is_our_owner(view, owner); });
}

/// True if the operator is allowed to change and delete the claim.
bool is_ours(const View& view, const kube::Object& claim) {
  return is_labelled(view, claim) && !has_other_owner(view, claim);
}

/// Returns why the claim does not satisfy the template, or "".
std::string misfit(const kube::Object& claim, const Json& wanted) {
  const auto text = [](const Json& of, std::initializer_list<std::string_view> path) { return core::get_string(of, path); };
  for (const char* field : {"storageClassName", "volumeMode", "volumeName"}) {
    const std::string is = text(claim.body, {"spec", field}), asked = text(wanted, {"spec", field});
    if (!asked.empty() && is != asked) return fmt::format("its {} is {}, not {}", field, is.empty() ? "not set" : is, asked);
  }
  const Json none = Json::array();
  const auto list = [&](const Json& of) {
    const Json* found = core::find(of, {"spec", "accessModes"});
    return found != nullptr && found->is_array() ? *found : none;
  };
  const Json has = list(claim.body);
  for (const Json& mode : list(wanted)) {
    if (std::ranges::find(has, mode) == has.end())
      return "its accessModes lack " + (mode.is_string() ? mode.get<std::string>() : mode.dump());
  }
  const auto size = [](const Json& of, std::initializer_list<std::string_view> path) {
    const Json* found = core::find(of, path);
    return found == nullptr ? std::nullopt : core::quantity(*found);
  };
  const auto asked = size(wanted, {"spec", "resources", "requests", "storage"});
  const auto requested = size(claim.body, {"spec", "resources", "requests", "storage"});
  const auto capacity = size(claim.body, {"status", "capacity", "storage"});
  if (asked && (requested || capacity) && std::max(requested.value_or(0), capacity.value_or(0)) < *asked)
    return "it is smaller than " + text(wanted, {"spec", "resources", "requests", "storage"});
  return {};
}

/// The names of claims that prevent the creation of workers.
struct Unusable {
  std::vector<std::string> of_others, unfit, going;
  std::string misfit;  ///< Why the first of `unfit` does not fit.
};

void tell_unusable(Unusable found, Draft& draft) {
  const auto names = [](std::vector<std::string> of) { return core::compress_hostlist(std::move(of)); };
  if (!found.of_others.empty()) {
    draft.wrong(
        "ClaimTaken",
        fmt::format("PersistentVolumeClaims {} have the names of claims of this NodeSet's workers, but belong to something "
                    "else: they are not used, and the workers are not created. Delete them, or remove their owner",
                    names(std::move(found.of_others))),
        "Create");
  }
  if (!found.unfit.empty()) {
    draft.wrong(
        "ClaimUnfit",
        fmt::format("PersistentVolumeClaims {} do not fit spec.volumeClaimTemplates ({}), so the workers are not created: "
                    "delete or replace the claims",
                    names(std::move(found.unfit)), found.misfit),
        "Create");
  }
  if (!found.going.empty()) {
    draft.waiting(
        "ClaimDeleted",
        fmt::format("waiting for PersistentVolumeClaims {} to be gone, which are being deleted: their workers get new ones",
                    names(std::move(found.going))));
  }
}

plan::ActPtr patch_claim(const kube::Object& claim, Json metadata, kube::PatchType type = kube::PatchType::kMerge) {
  auto act = std::make_shared<kube::Patch>();
  act->resource = kube::resources::kPersistentVolumeClaim;
  act->key = claim.meta.key();
  act->type = type;
  act->uid = claim.meta.uid;
  act->resource_version = claim.meta.resource_version;
  act->patch = {{"metadata", std::move(metadata)}};
  return act;
}

plan::ActPtr mark(const kube::Object& claim, Json pod_uid) {
  return patch_claim(claim, {{"annotations", {{std::string(api::kAnnotationScaledIn), std::move(pod_uid)}}}});
}

/// Deletes the claim only if it has not changed since it was observed, because a pod might have begun to use it in the
/// meantime.
plan::ActPtr deletion(const kube::Object& claim) {
  auto act = std::make_shared<kube::Delete>();
  act->resource = kube::resources::kPersistentVolumeClaim;
  act->key = claim.meta.key();
  act->uid = claim.meta.uid;
  act->resource_version = claim.meta.resource_version;
  return act;
}

/// Adds our labels to a claim without an owner, so that the cache and the watch select it.
void take_over(const View& view, const kube::Object& claim, const Json& wanted, const std::string& pod, Draft& draft) {
  const Json labels = worker_claim(wanted, view.in, pod).at("metadata").at("labels");
  draft.step(draft.lane("claims"), id_of({"adopt", "PersistentVolumeClaim"}, view, claim.meta.name),
             "it has the name of a claim of worker " + pod + ", fits, and belongs to nobody",
             patch_claim(claim, {{"labels", labels}}));
}

/// Returns true if the claim exists and can be used. Creates a missing claim, and counts it in `created`.
bool prepare_claim(const View& view, const Json& wanted, const std::string& pod, std::size_t& created, Unusable& unusable,
                   Draft& draft) {
  const std::string name = claim_name(wanted, pod);
  const plan::StepId id = id_of(kCreateClaim, view, name);
  const kube::Object* claim = find_claim(view, name);
  if (claim == nullptr) {
    if (created == kCreatesPerPass) {
      draft.wake_after(core::Duration{10}, "more claims to create");
    } else if (draft.step(draft.lane("claims"), id, "worker " + pod + " keeps its volume there",
                          kube::create(kube::resources::kPersistentVolumeClaim, worker_claim(wanted, view.in, pod)))) {
      ++created;
    }
    return false;
  }
  // Without our labels, the cache does not select this claim. Remember the failed creation, so that the next pass reads the
  // claim.
  if (!is_labelled(view, *claim)) draft.remember(id);
  if (has_other_owner(view, *claim) || (!is_labelled(view, *claim) && !claim->meta.label(api::kLabelName).empty())) {
    unusable.of_others.push_back(name);
    return false;
  }
  if (claim->meta.terminating()) {
    unusable.going.push_back(name);
    return false;
  }
  if (std::string why = misfit(*claim, wanted); !why.empty()) {
    if (unusable.unfit.empty()) unusable.misfit = name + ": " + why;
    unusable.unfit.push_back(name);
    return false;
  }
  if (is_labelled(view, *claim)) return true;
  take_over(view, *claim, wanted, pod, draft);
  return false;
}

bool goes_with_worker(const View& view, const Worker& worker) {
  // A worker that is deleted because of its Kubernetes node or of the scalingMode is not scaled in. Its claims are kept for the
  // next worker of the place.
  if (view.by_host() || !worker.key.numbered() || worker.fate.cause == Fate::Cause::kSwitched) return false;
  return view.goal == Goal::kServe && worker.fate.kind == Fate::Kind::kScaleIn &&
         view.in.nodeset.spec.persistent_volume_claim_retention_policy.when_scaled == api::ClaimRetention::kDelete;
}

/// Returns the claims that are deleted with the worker.
std::vector<const kube::Object*> claims_to_go(const View& view, const Worker& worker) {
  std::vector<const kube::Object*> out;
  if (!goes_with_worker(view, worker)) return out;
  for (const Json& one : templates(view)) {
    const kube::Object* claim = find_claim(view, claim_name(one, worker.pod->meta.name));
    if (claim != nullptr && is_ours(view, *claim) && !claim->meta.terminating()) out.push_back(claim);
  }
  return out;
}

/// Returns why a claim that was marked for deletion is kept after all. "": this is not decided yet. nullopt: the claim is
/// deleted.
std::optional<std::string> why_kept(const View& view, const kube::Object& claim, const std::string& pod_name,
                                    const Workers& workers, const std::set<std::string>& wanted) {
  if (view.in.nodeset.spec.persistent_volume_claim_retention_policy.when_scaled != api::ClaimRetention::kDelete)
    return "spec.persistentVolumeClaimRetentionPolicy.whenScaled sets it";
  if (wanted.contains(pod_name)) return "its worker is wanted again";
  const kube::PodRecord* pod = find_pod(view, pod_name);
  if (pod == nullptr) return std::nullopt;
  if (pod->meta.uid != claim.meta.annotation(api::kAnnotationScaledIn)) return "another worker of the name uses it";
  const auto worker = std::ranges::find_if(workers, [&](const Worker& one) { return one.pod->meta.uid == pod->meta.uid; });
  const bool stays = worker != workers.end() && worker->life == Life::kLive && worker->fate.kind != Fate::Kind::kScaleIn;
  return stays ? "its worker is wanted again" : "";
}

bool owned_by_nodeset(const kube::ObjectMeta& nodeset, const kube::Object& claim) {
  return std::ranges::any_of(claim.meta.owners, [&](const kube::OwnerReference& owner) { return owner.uid == nodeset.uid; });
}

/// Removes all owners of the claim. The NodeSet stays an owner if the claim is to be deleted with the NodeSet. Returns false if
/// there is nothing to remove.
bool disown(const View& view, const kube::Object& claim, Draft& draft) {
  const bool goes = view.in.nodeset.spec.persistent_volume_claim_retention_policy.when_deleted == api::ClaimRetention::kDelete;
  Json owners = Json::array();
  for (const kube::OwnerReference& owner : claim.meta.owners) {
    if (!goes || owner.uid != view.in.meta().uid) owners.push_back({{"$patch", "delete"}, {"uid", owner.uid}});
  }
  if (owners.empty()) return false;
  draft.step(draft.lane("claims"), id_of({"disown", "PersistentVolumeClaim"}, view, claim.meta.name),
             "the retention policy decides when it is deleted, not its owner",
             patch_claim(claim, {{"ownerReferences", std::move(owners)}}, kube::PatchType::kStrategic));
  return true;
}

/// Makes the NodeSet the owner of these claims.
void own(const View& view, const std::vector<const kube::Object*>& claims, Draft& draft) {
  if (claims.empty()) return;
  if (!view.in.stays) return draft.need(need_nodeset(view.in));
  if (!*view.in.stays) return;
  for (const kube::Object* claim : claims) {
    draft.step(
        draft.lane("claims"), id_of({"own", "PersistentVolumeClaim"}, view, claim->meta.name),
        "it is to be deleted with " + view.self_text(),
        patch_claim(*claim, {{"ownerReferences", Json::array({claim_owner(view.in.meta())})}}, kube::PatchType::kStrategic));
  }
}

void delete_with_event(const View& view, const std::vector<const kube::Object*>& claims, const std::string& why, Draft& draft) {
  plan::Lane& lane = draft.lane("delete claims");
  std::vector<std::string> names;
  for (const kube::Object* claim : claims) {
    if (draft.step(lane, id_of(kDeleteClaim, view, claim->meta.name), why, deletion(*claim))) names.push_back(claim->meta.name);
  }
  if (names.empty()) return;
  lane.then();
  lane.add(
      view.event_step("Normal", "SuccessfulDelete", "Delete",
                      fmt::format("Deleted PersistentVolumeClaims {}: {}", core::compress_hostlist(std::move(names)), why)));
}

}  // namespace

std::set<SlotKey> prepare_claims(const View& view, const Vacancies& vacancies, Draft& draft) {
  std::set<SlotKey> out;
  std::size_t created = 0;
  Unusable unusable;
  for (const SlotKey& place : vacancies.places) {
    for (const Json& wanted : templates(view)) {
      if (!prepare_claim(view, wanted, view.pod_name(place), created, unusable, draft)) out.insert(place);
    }
  }
  tell_unusable(std::move(unusable), draft);
  return out;
}

bool give_up_claims(const View& view, const Worker& worker, Draft& draft) {
  bool all = true;
  for (const kube::Object* claim : claims_to_go(view, worker)) {
    if (claim->meta.annotation(api::kAnnotationScaledIn) == worker.pod->meta.uid) continue;
    all = false;
    draft.step(draft.lane("claims"), id_of(kGiveUpClaim, view, claim->meta.name),
               "its worker " + worker.pod->meta.name + " is scaled in", mark(*claim, worker.pod->meta.uid));
  }
  return all;
}

void intend_for_claims(const View& view, const Worker& worker, plan::Intent& intent) {
  for (const kube::Object* claim : claims_to_go(view, worker)) {
    if (claim->meta.annotation(api::kAnnotationScaledIn) != worker.pod->meta.uid)
      intent.add(id_of(kGiveUpClaim, view, claim->meta.name));
    intent.add(id_of(kDeleteClaim, view, claim->meta.name));
  }
}

void keep_claims(const View& view, const Workers& workers, const Vacancies& vacancies, Draft& draft) {
  // Remove owners even if the Controller is missing. Once the NodeSet is being deleted, Kubernetes might delete owned claims
  // before the operator can remove the owners.
  const bool holds = view.goal == Goal::kHold && view.in.invalid.empty() && !view.in.meta().terminating();
  if (view.goal != Goal::kServe && !holds) return;
  const bool goes_with_nodeset =
      view.in.nodeset.spec.persistent_volume_claim_retention_policy.when_deleted == api::ClaimRetention::kDelete;
  std::vector<const kube::Object*> going, ownerless;
  std::set<std::string> wanted;
  for (const SlotKey& place : vacancies.places) wanted.insert(view.pod_name(place));
  for (const auto& [name, claim] : view.in.claims) {
    const std::string pod = pod_named_by(view, name);
    if (pod.empty() || !is_ours(view, *claim) || claim->meta.terminating()) continue;
    if (disown(view, *claim, draft) || holds) continue;
    if (goes_with_nodeset && claim->meta.owners.empty()) {
      ownerless.push_back(claim.get());
      continue;
    }
    if (claim->meta.annotation(api::kAnnotationScaledIn).empty()) continue;
    const std::optional<std::string> why = why_kept(view, *claim, pod, workers, wanted);
    if (why && !why->empty()) {
      draft.step(draft.lane("claims"), id_of({"keep", "PersistentVolumeClaim"}, view, name), *why, mark(*claim, nullptr));
    } else if (!why && !view.stops()) {
      going.push_back(claim.get());
    }
  }
  own(view, ownerless, draft);
  delete_with_event(view, going, "their workers were scaled in", draft);
}

bool release_claims(const View& view, Draft& draft) {
  bool none_left = true;
  std::size_t withheld = 0;
  for (const auto& [name, claim] : view.in.claims) {
    if (!is_ours(view, *claim) || claim->meta.terminating() || !owned_by_nodeset(view.in.meta(), *claim)) continue;
    if (disown(view, *claim, draft)) {
      none_left = false;
    } else if (view.stops()) {
      ++withheld;
    }
  }
  if (withheld == 0) return none_left;
  // Deletions may be stopped because of workers of other NodeSets. No event wakes this NodeSet when those workers
  // change.
  draft.wake_after(kStopAgain, "deletions may not be stopped any more");
  draft.waiting(
      "DeletionsStopped",
      fmt::format("deletions are stopped, so the NodeSet is kept, and {} PersistentVolumeClaims that would be deleted with it",
                  withheld));
  return false;
}

plan::Need need_nodeset(const Observed& observed) {
  std::string seen;
  for (const auto& [name, claim] : observed.claims) {
    if (claim->meta.owners.empty()) seen += name + "@" + claim->meta.resource_version + " ";
  }
  for (const kube::PodPtr& pod : observed.orphans) seen += pod->meta.uid + "@" + pod->meta.resource_version + " ";
  for (const kube::ObjectPtr& revision : observed.revisions) {
    if (revision->meta.controller_owner() == nullptr) seen += revision->meta.uid + "@" + revision->meta.resource_version + " ";
  }
  auto get = std::make_shared<kube::Get>();
  get->resource = resources::kNodeSet;
  get->key = observed.meta().key();
  return {"NodeSet behind children " + core::short_hash(seen, 10), std::move(get)};
}

std::optional<bool> nodeset_stays(const Observed& observed, const plan::Facts& answers) {
  const auto answer = answers.find(need_nodeset(observed).id);
  if (answer == answers.end()) return std::nullopt;
  if (!answer->second.value) return false;
  return core::find(*answer->second.value, {"metadata", "deletionTimestamp"}) == nullptr &&
         core::get_string(*answer->second.value, {"metadata", "uid"}) == observed.meta().uid;
}

plan::Need need_claim_events(const kube::ObjectMeta& claim) {
  return need_events(kube::resources::kPersistentVolumeClaim.kind, claim, "ProvisioningFailed");
}

void tell_claims(const View& view, const Workers& workers, Draft& draft) {
  std::vector<const kube::Object*> unbound;
  for (const Worker& worker : workers) {
    if (worker.life != Life::kLive || worker.goes() || !worker.pod->node_name.empty()) continue;
    const core::Duration left = kBinds - (view.in.now - worker.pod->meta.created);
    for (const Json& one : templates(view)) {
      const kube::Object* claim = find_claim(view, claim_name(one, worker.pod->meta.name));
      if (claim == nullptr || core::get_string(claim->body, {"status", "phase"}) == "Bound") continue;
      if (left.count() > 0) {
        draft.wake_after(std::min(left, kBinds), "a claim without a volume is reported");
      } else {
        unbound.push_back(claim);
      }
    }
  }
  if (unbound.empty()) return;
  // Only the first claim is examined, because all claims usually share the cause.
  const kube::ObjectMeta& first = unbound.front()->meta;
  const auto note = view.in.seen.claim_notes.find(first.name);
  const bool known = note != view.in.seen.claim_notes.end() && view.in.mono - note->second.read < kEventsAgain;
  if (!known) draft.need(need_claim_events(first));
  draft.wake_after(known ? kEventsAgain - (view.in.mono - note->second.read) : kEventsAgain,
                   "the reason why a claim has no volume may change");
  std::string phase = core::get_string(unbound.front()->body, {"status", "phase"});
  const std::string why = known ? note->second.text : "";
  std::string text =
      fmt::format("PersistentVolumeClaim {} is {}{}{}", first.name, phase.empty() ? "Pending" : phase,
                  why.empty() ? "" : ": " + why, unbound.size() > 1 ? fmt::format(" (and {} more)", unbound.size() - 1) : "");
  if (phase == "Lost" || !why.empty()) return draft.wrong("ClaimPending", std::move(text), "Run");
  draft.waiting("ClaimPending", std::move(text));
}

}  // namespace op::nodeset
