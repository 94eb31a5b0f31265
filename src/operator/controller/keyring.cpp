#include "operator/controller/keyring.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "api/well_known.hpp"
#include "kube/acts.hpp"
#include "kube/apply_helper.hpp"
#include "operator/common/children.hpp"
#include "operator/common/slinky.hpp"
#include "operator/controller/rollout.hpp"
#include "slinky/workers.hpp"

namespace op::controller {
namespace {

using core::Json;

constexpr const char* kChanged = "KeyChanged";
constexpr const char* kLost = "KeyringLost";

std::string in_template(const kube::Object& stateful_set) {
  return core::get_string(stateful_set.body, {"spec", "template", "metadata", "annotations", api::kAnnotationSlurmKeyHash});
}

/// Returns the digest of slurmctld's key. "": the key is unknown, because slurmctld has no StatefulSet or because another
/// operator created the StatefulSet.
std::string in_force(const Observed& observed) {
  if (!observed.stateful_set || observed.stateful_set->meta.annotation(kube::kIntentHash).empty()) return "";
  return key_by(observed, in_template(*observed.stateful_set));
}

/// True if a user accepts the loss of jobs (api::kAnnotationLoseJobs).
bool loses_jobs(const Observed& observed) {
  return is_true(observed.object->meta.annotation(api::kAnnotationLoseJobs));
}

/// Returns the jobs in Slurm's last answer for which `counts` is true. Returns none if Slurm does not answer and a user accepts
/// the loss of jobs.
std::vector<std::string> jobs(const Observed& observed, bool (*counts)(const slurm::Job&)) {
  std::vector<std::string> out;
  if (!observed.snapshot || (!answers(observed) && loses_jobs(observed))) return out;
  for (const auto& [id, job] : observed.snapshot->jobs) {
    if (counts(*job)) out.push_back(id < 0 ? "one that cannot be read" : std::to_string(id));
  }
  return out;
}

/// True if slurmctld has served with the key in force. If the keys cannot be compared, true if slurmctld has served with any
/// key.
bool has_served(const Observed& observed) {
  const ConfigState state = read_config_state(observed.config_map.get());
  const std::string runs = in_force(observed);
  if (state.served_key.empty() || runs.empty()) return !state.served_key.empty() || !state.accepted_hash.empty();
  return state.served_key == runs;
}

/// True if Slurm does not answer although it might have jobs on nodes outside of Kubernetes, or on nodes of workers that were
/// removed by force. False if slurmctld crashes or has not started in its pod, and never served with the key in force: then
/// slurmctld has no jobs, and the key can be the cause. False without a RestApi, because the operator can then never ask Slurm.
/// False if a user accepts the loss of jobs.
bool unheard(const Observed& observed) {
  if (observed.restapis.empty() || answers(observed) || loses_jobs(observed)) return false;
  return has_state(observed) || has_served(observed);
}

/// Returns the daemons and jobs that must have ended before another key can be used, and what users can do about them. "":
/// none. The operator also asks Slurm, because the cache of pods may be behind and there may be daemons outside of Kubernetes.
/// While Slurm does not answer, its last answer still proves that a job exists, but does not prove that no job exists.
std::string waits_for(const Observed& observed, bool state_at_stake) {
  const std::string lose = std::string(api::kAnnotationLoseJobs) + ": \"true\"";
  std::string out;
  const auto add = [&](const std::string& what) { out += (out.empty() ? "" : "; ") + what; };
  if (observed.stopped) add("the stop switch (remove the annotation " + std::string(api::kAnnotationStopDeletions) + ")");
  if (!observed.workers.empty()) add("workers (scale all NodeSets to 0): " + some_of(observed.workers));
  // If slurmctld is external, these keys matter only to jobs on workers.
  if (observed.controller.spec.external) return out;
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

/// Returns the recipe for a value in a Secret. The value is a copy of the key in `source`.
Json copy_of(const SecretFacts& source) {
  return {{"$copy", key_in(source, source.ref.key)}};
}

Json data_of(const Observed& observed) {
  return {{observed.keyring.ref.key, copy_of(observed.slurm_key)}};
}

/// Returns the metadata of the keyring. `content`: SecretFacts::content of the keyring's data, at present or after the write.
Json metadata(const Observed& observed, const std::string& digest, const std::string& content) {
  const kube::ObjectMeta& meta = observed.object->meta;
  kube::StringMap notes{{std::string(api::kAnnotationSlurmKeyHash), digest},
                        {std::string(api::kAnnotationDataHash), keyring_note(meta.uid, content)}};
  const bool same_key = observed.stateful_set && in_force(observed) == digest;
  if (const std::string made = same_key ? in_template(*observed.stateful_set) : digest; made != digest)
    notes.emplace(api::kAnnotationMadeWithKey, made);
  return child_json(kube::resources::kSecret, {meta.ns, observed.keyring.ref.secret}, resources::kController, meta,
                    controller_labels(meta.name), notes)["metadata"];
}

plan::Step create(const Observed& observed) {
  Json secret{{"apiVersion", "v1"},
              {"kind", "Secret"},
              {"metadata", metadata(observed, observed.slurm_key.digest, observed.slurm_key.content)},
              {"type", "Opaque"},
              {"data", data_of(observed)}};
  return {{"create", "Secret", observed.keyring.ref.secret},
          "daemons mount a copy of the key",
          kube::create(kube::resources::kSecret, std::move(secret))};
}

/// Whether slurmctld's pod is replaced although the digest of the key has not changed.
enum class Template { kAsItIs, kAnew };

/// Returns the step that patches the keyring. If `data` is not null, the patch replaces the data and ends a rotation.
plan::Step patch(const Observed& observed, const std::string& digest, const std::string& content, Json data, const char* why,
                 Template pod = Template::kAsItIs) {
  Json change{{"metadata", metadata(observed, digest, content)}};
  change["metadata"].erase("name");
  change["metadata"].erase("namespace");
  Json& notes = change["metadata"]["annotations"];
  if (pod == Template::kAnew || !notes.contains(api::kAnnotationMadeWithKey))
    notes[std::string(api::kAnnotationMadeWithKey)] = nullptr;
  if (!data.is_null()) {
    notes[std::string(api::kAnnotationKeyRotation)] = nullptr;
    for (const std::string_view rest :
         {api::kKeyOther, api::kKeyJwks, api::kKeyGeneration, api::kKeyLoginJwks, api::kKeyLoginGeneration})
      data[std::string(rest)] = nullptr;
    change["data"] = std::move(data);
  }
  return {{"update", "Secret", observed.keyring.ref.secret},
          why,
          kube::merge_patch(kube::resources::kSecret, *observed.keyring.meta, std::move(change))};
}

bool is_keyring(const Observed& observed) {
  const kube::ObjectMeta& copy = *observed.keyring.meta;
  return copy.label(api::kLabelName) == kAppController && copy.label(api::kLabelInstance) == observed.object->meta.name;
}

/// True if the keyring is about to be deleted: it is terminating, or it belongs to an earlier Controller of this name. If that
/// Controller was deleted alone (cascade=orphan), its keyring has no owner.
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

/// True if the condition KeyChanged shows that new data in the user's Secret are not in use yet. If neither the StatefulSet nor
/// the keyring exists, only this condition shows that.
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

/// True if the keyring's metadata name the owner, the source key, and the data with which the keyring was made.
bool labelled(const SecretFacts& copy) {
  return !copy.digest.empty() && copy.meta->controller_owner() != nullptr &&
         !copy.meta->annotation(api::kAnnotationDataHash).empty();
}

/// True if the keyring was edited and the user's Secret has the data that the keyring had before the edit. The user may have
/// replaced the Secret object since.
bool has_former_data(const Observed& observed) {
  return observed.keyring.edited && observed.keyring.meta->annotation(api::kAnnotationDataHash) ==
                                        keyring_note(observed.object->meta.uid, observed.slurm_key.content);
}

/// Continues a rotation. If the rotation cannot continue and no running daemon depends on it, ends the rotation at once. This
/// end restarts slurmctld, because slurmctld might have loaded the files of any step.
void go_on(const Observed& observed, bool state_at_stake, Keyring& out) {
  const SecretFacts& copy = observed.keyring;
  const bool begins = copy.rotation->begins();
  if ((!begins || observed.slurm_key.usable()) && !cannot_rotate(observed).empty() &&
      waits_for(observed, state_at_stake).empty()) {
    const SecretFacts& from = begins ? observed.slurm_key : copy;
    out.renew = patch(observed, from.digest, from.content, begins ? data_of(observed) : Json::object(),
                      "the key is being rotated, and no daemon would be cut off", Template::kAnew);
    out.digest = from.digest;
    return;
  }
  out.rotation = plan_rotation(observed);
  out.mend = std::move(out.rotation->write);
}

Keyring with_copy(const Observed& observed, bool state_at_stake) {
  const SecretFacts& source = observed.slurm_key;
  const SecretFacts& copy = observed.keyring;
  const std::string runs = in_force(observed);
  const std::string of = !copy.digest.empty() ? copy.digest : runs.empty() ? source.digest : runs;
  Keyring out;
  if (copy.usable()) out.digest = copy.digest;
  if (copy.usable() && copy.rotation) {
    go_on(observed, state_at_stake, out);
  } else if (copy.edited && !copy.meta->annotation(api::kAnnotationKeyRotation).empty()) {
    // The keyring was edited during a rotation, so it is unknown which step's files each daemon has loaded.
    out.waits_for = waits_for(observed, state_at_stake);
    if (!out.waits_for.empty() || !source.usable()) {
      out.problem = edited(observed);
    } else {
      out.renew = patch(observed, source.digest, source.content, data_of(observed),
                        "somebody has changed it, and no daemon would be cut off", Template::kAnew);
      out.digest = source.digest;
    }
  } else if (!source.usable()) {
    if (copy.edited) out.problem = edited(observed);
  } else if (copy.content == source.content && !copy.edited) {
    if (!labelled(copy)) out.mend = patch(observed, of, source.content, nullptr, "it lacks the labels of its Controller");
  } else if (runs == source.digest) {
    out.mend = patch(observed, runs, source.content, data_of(observed), "somebody has changed it");
  } else if (has_former_data(observed)) {
    out.mend = patch(observed, of, source.content, data_of(observed), "somebody has changed it");
  } else if (out.waits_for = waits_for(observed, state_at_stake); out.waits_for.empty()) {
    out.renew = patch(observed, source.digest, source.content, data_of(observed),
                      "the key has changed, and no daemon would be cut off");
    out.digest = source.digest;
  } else if (const std::string hindrance = cannot_rotate(observed); !copy.edited && labelled(copy) && hindrance.empty()) {
    out.mend = begin_rotation(observed);
    out.waits_for.clear();
  } else {
    out.problem = copy.edited ? edited(observed) : changed(observed);
    if (!copy.edited) out.cannot_rotate = hindrance;
  }
  return out;
}

}  // namespace

std::string key_by(const Observed& observed, const std::string& made_with) {
  if (!made_with.empty() && made_with == made_with_key(observed)) return observed.keyring.digest;
  const ConfigState state = read_config_state(observed.config_map.get());
  return !made_with.empty() && made_with == state.served_made_with ? state.served_key : made_with;
}

std::string made_with_key(const Observed& observed) {
  return observed.keyring.meta ? std::string(observed.keyring.meta->annotation(api::kAnnotationMadeWithKey)) : "";
}

std::string made_with_key(const Observed& observed, const std::string& digest) {
  const std::string made = made_with_key(observed);
  return made.empty() || digest != observed.keyring.digest ? digest : made;
}

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
