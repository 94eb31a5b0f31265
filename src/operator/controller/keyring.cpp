#include "operator/controller/keyring.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "api/well_known.hpp"
#include "cluster/workers.hpp"
#include "kube/acts.hpp"
#include "kube/apply_helper.hpp"
#include "operator/common/children.hpp"
#include "operator/controller/rollout.hpp"

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

/// A user wants it though Slurm does not answer.
bool loses_jobs(const Observed& observed) {
  return is_true(observed.object->meta.annotation(api::kAnnotationLoseJobs));
}

bool answers(const Observed& observed) {
  return observed.snapshot && observed.snapshot->complete();
}

/// The jobs that `counts`, as Slurm last told them.
std::vector<std::string> jobs(const Observed& observed, bool (*counts)(const slurm::Job&)) {
  std::vector<std::string> out;
  if (!observed.snapshot || (!answers(observed) && loses_jobs(observed))) return out;
  for (const auto& [id, job] : observed.snapshot->jobs) {
    if (counts(*job)) out.push_back(id < 0 ? "one that cannot be read" : std::to_string(id));
  }
  return out;
}

/// A slurmctld was up with the key that is in force. Where that cannot be compared, with any.
bool has_served(const Observed& observed) {
  const ConfigState state = read_config_state(observed.config_map.get());
  const std::string runs = in_force(observed);
  if (state.served_key.empty() || runs.empty()) return !state.served_key.empty() || !state.accepted_hash.empty();
  return state.served_key == runs;
}

/// Slurm, which may have jobs on nodes outside of Kubernetes, or of workers that were removed by force, does not answer. It has
/// none with a key with which it never was up, which may be why it does not get up. Without a RestApi nobody can ever look.
bool unheard(const Observed& observed) {
  if (observed.restapis.empty() || answers(observed) || loses_jobs(observed)) return false;
  return has_state(observed) || has_served(observed);
}

/// Slurm is asked as well: a cache of pods may be behind, and there are daemons outside of Kubernetes. What it said last counts
/// while it does not answer, but not what it did not say.
std::string waits_for(const Observed& observed, bool state_at_stake) {
  const std::string lose = std::string(api::kAnnotationLoseJobs) + ": \"true\"";
  std::string out;
  const auto add = [&](const std::string& what) { out += (out.empty() ? "" : "; ") + what; };
  if (observed.stopped) add("the stop switch (remove the annotation " + std::string(api::kAnnotationStopDeletions) + ")");
  if (!observed.workers.empty()) add("workers (scale all NodeSets to 0): " + some_of(observed.workers));
  const auto running = jobs(observed, [](const slurm::Job& job) { return job.holds_nodes(); });
  if (!running.empty()) add("jobs on nodes (let them end, or cancel them): " + some_of(running));
  if (state_at_stake) {
    const auto waiting = jobs(observed, [](const slurm::Job& job) { return job.state == "PENDING"; });
    if (!waiting.empty())
      add("pending jobs, which would be lost with slurmctld's pod, because spec.persistence.enabled is false (cancel them, or "
          "set the annotation " +
          lose + "): " + some_of(waiting));
  }
  if (unheard(observed) || (state_at_stake && out.empty()))
    add("Slurm to answer, because it may have jobs on nodes that are not workers (repair slurmctld and slurmrestd, or set "
        "the annotation " +
        lose + ", which cuts off such jobs)");
  return out;
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
  // Of the user's Secret: the copy holds the same, now or with what is written.
  const std::string note = keyring_note(meta.uid, observed.slurm_key.content);
  return child_json(
      kube::resources::kSecret, {meta.ns, observed.keyring.ref.secret}, resources::kController, meta,
      controller_labels(meta.name),
      {{std::string(api::kAnnotationSlurmKeyHash), digest}, {std::string(api::kAnnotationDataHash), note}})["metadata"];
}

plan::Step create(const Observed& observed) {
  Json secret{{"apiVersion", "v1"},
              {"kind", "Secret"},
              {"metadata", metadata(observed, observed.slurm_key.digest)},
              {"type", "Opaque"},
              {"data", data_of(observed)}};
  return {{"create", "Secret", observed.keyring.ref.secret},
          "daemons mount a copy of the key",
          kube::create(kube::resources::kSecret, std::move(secret))};
}

plan::Step patch(const Observed& observed, const std::string& digest, Json data, const char* why) {
  Json change{{"metadata", metadata(observed, digest)}};
  change["metadata"].erase("name");
  change["metadata"].erase("namespace");
  if (!data.is_null()) change["data"] = std::move(data);
  return {{"update", "Secret", observed.keyring.ref.secret},
          why,
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
  return {
      kChanged,
      source_text(observed) +
          ": these data differ from what the cluster runs with, and would cut off running daemons. Restore the previous data, "
          "or see condition KeyChanged for what the new data wait for"};
}

Problem lost(const Observed& observed) {
  return {kLost,
          fmt::format(
              "Secret {}/{}, which daemons mount, is missing, and {}: these data may not be what the cluster runs with. "
              "Put the previous data back into that same Secret, or see condition KeyChanged for what the operator waits for "
              "before it creates the missing one again. Until then no new daemon starts; running ones have their key",
              observed.object->meta.ns, observed.keyring.ref.secret, source_text(observed))};
}

Problem edited(const Observed& observed) {
  return {kLost,
          fmt::format(
              "Secret {}/{}, which daemons mount, was edited, and {}: these data may not be what the cluster runs with. "
              "Put the previous data back into either Secret, or see condition KeyChanged for what the operator waits for "
              "before it writes the edited one again. Until then no new daemon starts, and slurmctld is neither reconfigured "
              "nor replaced; running daemons have their key, and those that restart are cut off",
              observed.object->meta.ns, observed.keyring.ref.secret, source_text(observed))};
}

/// It was told that other data wait. Nothing else tells, where StatefulSet and copy are gone.
bool other_data_waited(const Observed& observed) {
  return api::find_condition(observed.controller.status.conditions, api::kConditionKeyChanged) != nullptr;
}

Keyring without_copy(const Observed& observed, bool state_at_stake) {
  Keyring out;
  if (!observed.slurm_key.usable()) return out;
  const std::string runs = in_force(observed);
  const bool known = runs.empty() ? !other_data_waited(observed) : runs == observed.slurm_key.digest;
  if (!known) out.waits_for = waits_for(observed, state_at_stake);
  if (out.waits_for.empty()) {
    out.mend = create(observed);
  } else {
    out.problem = lost(observed);
  }
  return out;
}

/// The copy says whose it is, what of, and with which data.
bool labelled(const SecretFacts& copy) {
  return !copy.digest.empty() && copy.meta->controller_owner() != nullptr &&
         !copy.meta->annotation(api::kAnnotationDataHash).empty();
}

/// The user's Secret holds what the copy was edited from, be it another object by now.
bool has_former_data(const Observed& observed) {
  return observed.keyring.edited && observed.keyring.meta->annotation(api::kAnnotationDataHash) ==
                                        keyring_note(observed.object->meta.uid, observed.slurm_key.content);
}

Keyring with_copy(const Observed& observed, bool state_at_stake) {
  const SecretFacts& source = observed.slurm_key;
  const SecretFacts& copy = observed.keyring;
  const std::string runs = in_force(observed);
  const std::string of = !copy.digest.empty() ? copy.digest : runs.empty() ? source.digest : runs;
  Keyring out;
  if (copy.usable()) out.digest = copy.digest;
  if (!source.usable()) {
    if (copy.edited) out.problem = edited(observed);
  } else if (copy.content == source.content && !copy.edited) {
    if (!labelled(copy)) out.mend = patch(observed, of, nullptr, "it does not say whose it is");
  } else if (runs == source.digest) {
    out.mend = patch(observed, runs, data_of(observed), "somebody has changed it");
  } else if (has_former_data(observed)) {
    out.mend = patch(observed, of, data_of(observed), "somebody has changed it");
  } else if (out.waits_for = waits_for(observed, state_at_stake); out.waits_for.empty()) {
    out.renew = patch(observed, source.digest, data_of(observed), "the key has changed, and there is nobody to cut off");
    out.digest = source.digest;
  } else {
    out.problem = copy.edited ? edited(observed) : changed(observed);
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
  const bool others = copy.presence == kube::Presence::kPresent && !is_keyring(observed);
  Keyring out;
  if (copy.presence == kube::Presence::kAbsent) {
    out = without_copy(observed, state_at_stake);
  } else if (others) {
    out.problem = Problem{"SecretTaken",
                          fmt::format("Secret {}/{} does not belong to this Controller, which needs that name for the copy of "
                                      "its key: delete the Secret, or give it another name. Until then slurmctld is "
                                      "neither reconfigured nor replaced",
                                      observed.object->meta.ns, copy.ref.secret)};
  } else if (copy.presence == kube::Presence::kPresent && !goes(observed)) {
    out = with_copy(observed, state_at_stake);
  }
  const bool mounts_unknown = copy.presence == kube::Presence::kUnknown || others || (copy.edited && !out.renew);
  out.freezes = mounts_unknown || (!observed.old_mounts.empty() && (unknown || out.problem));
  return out;
}

}  // namespace op::controller
