#include "operator/controller/keyring.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/well_known.hpp"
#include "kube/acts.hpp"
#include "kube/apply_helper.hpp"
#include "operator/common/children.hpp"

namespace op::controller {
namespace {

using core::Json;

constexpr const char* kChanged = "KeyChanged";
constexpr const char* kLost = "KeyringLost";

/// The digest of what slurmctld was made with; "" where it cannot be compared, for nobody, or another operator, made it.
std::string in_force(const Observed& observed) {
  if (!observed.stateful_set || observed.stateful_set->meta.annotation(kube::kIntentHash).empty()) return "";
  return core::get_string(observed.stateful_set->body,
                          {"spec", "template", "metadata", "annotations", api::kAnnotationSlurmKeyHash});
}

/// Slurm is asked as well: a cache of pods may be behind, and there are daemons outside of Kubernetes.
bool cuts_off(const Observed& observed, bool state_at_stake) {
  if (observed.stopped || state_at_stake || !observed.workers.empty()) return true;
  return observed.snapshot && observed.snapshot->complete() &&
         std::ranges::any_of(observed.snapshot->jobs, [](const auto& entry) { return entry.second->holds_nodes(); });
}

Json copy_of(const SecretFacts& source) {
  return {{"$copy",
           {{"namespace", source.meta->ns},
            {"name", source.meta->name},
            {"key", source.ref.key},
            {"uid", source.meta->uid},
            {"resourceVersion", source.meta->resource_version}}}};
}

Json data_of(const Observed& observed) {
  return {{observed.keyring.ref.key, copy_of(observed.slurm_key)}};
}

Json metadata(const Observed& observed, const std::string& digest) {
  const kube::ObjectMeta& meta = observed.object->meta;
  return child_json(kube::resources::kSecret, {meta.ns, observed.keyring.ref.secret}, resources::kController, meta,
                    controller_labels(meta.name), {{std::string(api::kAnnotationSlurmKeyHash), digest}})["metadata"];
}

plan::Step create(const Observed& observed) {
  Json secret{{"apiVersion", "v1"},
              {"kind", "Secret"},
              {"metadata", metadata(observed, observed.slurm_key.digest)},
              {"type", "Opaque"},
              {"data", data_of(observed)}};
  return {"create Secret " + observed.keyring.ref.secret, "daemons mount a copy of the key",
          kube::create(kube::resources::kSecret, std::move(secret))};
}

plan::Step patch(const Observed& observed, const std::string& digest, Json data, const char* why) {
  Json change{{"metadata", metadata(observed, digest)}};
  change["metadata"].erase("name");
  change["metadata"].erase("namespace");
  if (!data.is_null()) change["data"] = std::move(data);
  return {"update Secret " + observed.keyring.ref.secret, why,
          kube::merge_patch(kube::resources::kSecret, *observed.keyring.meta, std::move(change))};
}

bool is_keyring(const Observed& observed) {
  const kube::ObjectMeta& copy = *observed.keyring.meta;
  return copy.label(api::kLabelName) == kAppController && copy.label(api::kLabelInstance) == observed.object->meta.name;
}

/// That of a Controller before, which is about to be collected. Where that went alone, its keyring has no owner.
bool goes(const Observed& observed) {
  const kube::OwnerReference* owner = observed.keyring.meta->controller_owner();
  return observed.keyring.meta->terminating() || (owner != nullptr && owner->uid != observed.object->meta.uid);
}

std::string source_text(const Observed& observed) {
  return fmt::format("Secret {}/{}, key {}", observed.object->meta.ns, observed.slurm_key.ref.secret,
                     observed.slurm_key.ref.key);
}

Problem changed(const Observed& observed) {
  return {kChanged, source_text(observed) +
                        ": these are not the data that the cluster runs with, and they would cut off what runs. They come into "
                        "force by themselves, with a restart of slurmctld and slurmrestd, once the cluster has no workers (all "
                        "NodeSets at replicas: 0). Or put the former data back"};
}

Problem lost(const Observed& observed) {
  return {kLost, fmt::format("Secret {}/{}, which daemons mount, is gone, and {}: these are not known to be the data that the "
                             "cluster runs with. Put the former data back into the same Secret, or bring all NodeSets to "
                             "replicas: 0, with which it is made anew. Until then nothing new starts; what runs has its key",
                             observed.object->meta.ns, observed.keyring.ref.secret, source_text(observed))};
}

/// It was told that other data wait. Nothing else tells, where StatefulSet and copy are gone.
bool other_data_waited(const Observed& observed) {
  return api::find_condition(observed.controller.status.conditions, api::kConditionKeyChanged) != nullptr;
}

Keyring without_copy(const Observed& observed, bool cuts) {
  Keyring out;
  if (!observed.slurm_key.usable()) return out;
  const std::string runs = in_force(observed);
  const bool known = runs.empty() ? !other_data_waited(observed) : runs == observed.slurm_key.digest;
  if (known || !cuts) {
    out.mend = create(observed);
  } else {
    out.problem = lost(observed);
  }
  return out;
}

Keyring with_copy(const Observed& observed, bool cuts) {
  const SecretFacts& source = observed.slurm_key;
  const SecretFacts& copy = observed.keyring;
  const std::string runs = in_force(observed);
  Keyring out;
  if (copy.usable()) out.digest = copy.digest;
  if (!source.usable()) return out;
  if (copy.content == source.content) {
    if (!copy.digest.empty() && copy.meta->controller_owner() != nullptr) return out;
    out.mend = patch(observed, runs.empty() ? source.digest : runs, nullptr, "it does not say whose it is");
  } else if (runs == source.digest) {
    out.mend = patch(observed, runs, data_of(observed), "somebody has changed it");
  } else if (!cuts) {
    out.renew = patch(observed, source.digest, data_of(observed), "the key has changed, and there is nobody to cut off");
    out.digest = source.digest;
  } else {
    out.problem = changed(observed);
  }
  return out;
}

}  // namespace

Json restored_key(const Observed& observed) {
  if (!observed.keyring.usable() || !is_keyring(observed) || goes(observed)) return nullptr;
  return copy_of(observed.keyring);
}

Keyring plan_keyring(const Observed& observed, bool state_at_stake) {
  const SecretFacts& copy = observed.keyring;
  const bool unknown = copy.presence == kube::Presence::kUnknown || observed.slurm_key.presence == kube::Presence::kUnknown;
  Keyring out;
  const bool cuts = cuts_off(observed, state_at_stake);
  if (copy.presence == kube::Presence::kAbsent) {
    out = without_copy(observed, cuts);
  } else if (copy.presence == kube::Presence::kPresent && !is_keyring(observed)) {
    out.problem =
        Problem{"SecretTaken", fmt::format("Secret {}/{} is not this Controller's, which wants to keep a copy of its key "
                                           "there: delete it, or give it another name",
                                           observed.object->meta.ns, copy.ref.secret)};
  } else if (copy.presence == kube::Presence::kPresent && !goes(observed)) {
    out = with_copy(observed, cuts);
  }
  out.freezes = !observed.old_mounts.empty() && (unknown || out.problem);
  return out;
}

}  // namespace op::controller
