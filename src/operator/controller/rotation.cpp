#include "operator/controller/rotation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/well_known.hpp"
#include "core/base64.hpp"
#include "kube/acts.hpp"
#include "operator/common/keyring_volume.hpp"
#include "operator/common/pod_template.hpp"
#include "operator/common/slinky.hpp"
#include "operator/controller/backups.hpp"
#include "operator/controller/build.hpp"
#include "operator/controller/keyring.hpp"
#include "operator/controller/prologs.hpp"
#include "slinky/keys.hpp"
#include "slinky/worker_names.hpp"
#include "slinky/workers.hpp"
#include "slurm/acts.hpp"

namespace op::controller {
namespace {

using core::Json;

/// The time in which a message can still arrive after its sender has loaded another key file. Tokens are valid for one minute,
/// and credentials for two minutes (AuthInfo's ttl= and cred_expire=). kWithoutKidMayArrive is for messages without a kid (key
/// id): a daemon with both keys verifies such messages with the key with which the daemon itself signs. All credentials have a
/// kid.
constexpr core::Duration kSignedMayArrive{180000}, kWithoutKidMayArrive{90000};
/// A slurmd reads its keys before it begins to register. It begins to register at most this long after its reported start.
constexpr core::Duration kBeginsToRegister{30000};
constexpr int kShortestKey = 16;
/// The largest number of failed witnesses per pod. A witness is an ephemeral container: see rotation.hpp.
constexpr int kMostWitnesses = 5;
/// The time between two checks whether the daemons have loaded the files of the step.
constexpr core::Duration kKeyPoll{1000};
/// The pause between two attempts to reach daemons that have not loaded the files. The pause doubles with each attempt.
constexpr core::Duration kLoadAgain{15000};
constexpr core::Duration kLongestLoadAgain{10 * 60 * 1000};
constexpr std::size_t kWitnessesPerPass = 64;

const KeyRotation& rotation_of(const Observed& observed) {
  return *observed.keyring.rotation;
}

std::string encoded(std::string_view text) {
  return core::base64_encode(text);
}

Json jwks(Json signs, Json besides) {
  return {{"$jwks", {{"signs", 0}, {"keys", Json::array({std::move(signs), std::move(besides)})}}}};
}

/// True if a container of the pod might have read its files: the pod is on a Kubernetes node and has not ended.
bool may_have_read(const kube::PodRecord& pod) {
  const bool not_yet = pod.node_name.empty() && pod.phase == "Pending";
  return !not_yet && pod.phase != "Failed" && pod.phase != "Succeeded";
}

/// Returns the pods of slurmctld and workers that might have read a key and have not ended.
std::vector<kube::PodPtr> daemons(const Observed& observed) {
  std::vector<kube::PodPtr> out;
  for (const auto* pods : {&observed.pods, &observed.worker_pods}) {
    for (const kube::PodPtr& pod : *pods) {
      if (may_have_read(*pod)) out.push_back(pod);
    }
  }
  return out;
}

bool is_slurmctld(const kube::PodRecord& pod) {
  return pod.meta.label(api::kLabelName) == kAppController;
}

bool reads_jwks(const kube::PodRecord& pod) {
  return is_true(pod.meta.annotation(api::kAnnotationReadsJwks));
}

std::string uid_of_slurmctld(const Observed& observed) {
  const kube::PodRecord* pod = running_pod(observed);
  return pod == nullptr ? "" : pod->meta.uid;
}

/// Returns the reasons why no step of a rotation can begin now. Most of these reasons remain until somebody acts.
std::vector<std::string> in_the_way(const Observed& observed) {
  std::vector<std::string> out;
  if (observed.stopped) out.push_back(fmt::format("the stop switch (remove the annotation {})", api::kAnnotationStopDeletions));
  if (observed.restapis.empty()) out.emplace_back("a RestApi, which shows what daemons have loaded");
  if (backups(observed) > 0 && !primary_ready(observed)) out.emplace_back("slurmctld's primary to be ready again");
  if (uid_of_slurmctld(observed).empty()) out.emplace_back("slurmctld to run");
  std::vector<std::string> old;
  for (const kube::PodPtr& pod : daemons(observed)) {
    if (!reads_jwks(*pod)) old.push_back(pod->meta.name);
  }
  if (!old.empty())
    out.push_back(
        "pods that an earlier version created, or whose template replaces SLURM_SACK_KEY, SLURM_SACK_JWKS or the volume "
        "slurm-etc (replace them): " +
        some_of(old));
  const ConfigState state = read_config_state(observed.config_map.get());
  const std::string_view conf = slurm_conf(state.offered);
  if (conf.find("enable_stepmgr") != std::string_view::npos)
    out.emplace_back("slurmstepds, which keep the key (remove enable_stepmgr from SlurmctldParameters)");
  if (conf.find("accounting_storage/slurmdbd") != std::string_view::npos)
    out.emplace_back("slurmdbd, which has one key at a time (AccountingStorageType)");
  if (conf.find("ttl=") != std::string_view::npos || conf.find("cred_expire=") != std::string_view::npos)
    out.emplace_back("messages that may be on their way for long (remove ttl= and cred_expire= from AuthInfo)");
  if (!answers(observed)) {
    out.emplace_back("Slurm to answer");
    return out;
  }
  std::vector<std::string> others, stepmgrs;
  for (const auto& [id, job] : observed.snapshot->jobs) {
    if (job->stepmgr && job->holds_nodes()) stepmgrs.push_back(std::to_string(id));
  }
  if (!stepmgrs.empty()) out.push_back("jobs with --stepmgr, which keep the key (let them end): " + some_of(stepmgrs));
  for (const auto& [name, node] : observed.snapshot->nodes) {
    if (node->state.base != "FUTURE" && !observed.worker_nodes.contains(name)) others.push_back(name);
  }
  if (!others.empty())
    out.push_back("nodes that are not workers, whose keys the operator does not see (delete their records): " +
                  some_of(others));
  return out;
}

std::string joined(const std::vector<std::string>& items) {
  return fmt::format("{}", fmt::join(items, "; "));
}

/// What the witnesses of a pod show about the files of the current step.
struct Witness {
  std::optional<core::WallTime> done;  ///< When a witness found that the kubelet had refreshed the files.
  bool waits = false;                  ///< A witness is waiting for the files.
  int failed = 0;  ///< Number of witnesses that were killed, perhaps with their machine. Kubernetes does not restart them.
};

std::string witness_name(const KeyRotation& rotation, int before) {
  return "keys-" + rotation.generation() + (before > 0 ? fmt::format("-{}", before) : "");
}

Witness witness_in(const kube::PodRecord& pod, const KeyRotation& rotation) {
  Witness out;
  const std::string first = witness_name(rotation, 0);
  for (const kube::EphemeralContainer& container : pod.ephemeral) {
    if (container.name != first && !container.name.starts_with(first + "-")) continue;
    if (container.done) out.done = container.done;
    out.waits = out.waits || !(container.done || container.failed);
    if (container.failed) ++out.failed;
  }
  return out;
}

plan::Step add_witness(const Observed& observed, const kube::PodRecord& pod, int before) {
  const std::string generation = rotation_of(observed).generation();
  const Json container{{"name", witness_name(rotation_of(observed), before)},
                       {"image", pod.image},
                       {"imagePullPolicy", "IfNotPresent"},
                       {"command", wait_for_keys(generation)},
                       {"volumeMounts", Json::array({read_only_mount(kEtcVolume, "/etc/slurm")})}};
  // The patch has no resourceVersion, because the pod's status changes all the time and nobody else adds a container of this
  // name.
  return {
      {"add", "witness", pod.meta.name, generation},
      "the container shows when the kubelet has refreshed the keys",
      kube::patch_any_version(kube::resources::kPod, pod.meta, {{"spec", {{"ephemeralContainers", Json::array({container})}}}},
                              kube::PatchType::kStrategic, "ephemeralcontainers")};
}

/// True if the worker's slurmd was started or reconfigured after its kubelet had refreshed the files.
bool has_loaded(const Observed& observed, const kube::PodRecord& worker, core::WallTime refreshed) {
  const slurm::Node* node = observed.snapshot ? observed.snapshot->node(slurm_node_name(worker)) : nullptr;
  return node != nullptr && has_registered(worker, *node) && node->slurmd_start_time &&
         *node->slurmd_start_time > refreshed + kBeginsToRegister;
}

plan::Step write_keyring(const Observed& observed, const char* verb, const char* why,
                         const std::optional<KeyRotation>& rotation, Json values, kube::StringMap notes = {}) {
  Json annotations = notes;
  annotations[std::string(api::kAnnotationKeyRotation)] = rotation ? Json(rotation->str()) : Json();
  Json change{{"metadata", {{"annotations", std::move(annotations)}}}};
  if (rotation && !values.empty()) values[std::string(api::kKeyGeneration)] = encoded(rotation->generation());
  if (!values.empty()) change["data"] = std::move(values);
  return {{verb, "Secret", observed.keyring.ref.secret, rotation ? rotation->generation() : ""},
          why,
          kube::merge_patch(kube::resources::kSecret, *observed.keyring.meta, std::move(change))};
}

Json without_jwks() {
  return {{std::string(api::kKeyOther), nullptr},
          {std::string(api::kKeyJwks), nullptr},
          {std::string(api::kKeyLoginJwks), nullptr},
          {std::string(api::kKeyLoginGeneration), nullptr}};
}

/// Ends a rotation if the user has withdrawn or replaced the new key. At this time, all daemons still sign with the old key.
plan::Step give_up(const Observed& observed) {
  return write_keyring(observed, "give up", "the Secret has other data again", std::nullopt, without_jwks());
}

plan::Step renew_logins(const Observed& observed) {
  KeyRotation next = rotation_of(observed);
  next.step = KeyStep::kLogins;
  const Json login = jwks(key_in(observed.keyring, api::kKeyOther), key_in(observed.keyring, api::kKeySlurm));
  const std::string generation = encoded(next.id);
  return write_keyring(observed, "renew logins of", "every daemon has both keys", std::move(next),
                       {{std::string(api::kKeyLoginJwks), login}, {std::string(api::kKeyLoginGeneration), generation}});
}

/// Records since when all login pods have signed with the new key. nullopt: some login pod does not sign with the new key.
plan::Step note_logins(const Observed& observed, std::optional<core::WallTime> since) {
  KeyRotation noted = rotation_of(observed);
  noted.logins_at = since;
  return write_keyring(observed, "note logins of", since ? "all login pods have the new key" : "a login pod has the former key",
                       std::move(noted), Json::object());
}

plan::Step switch_keys(const Observed& observed) {
  const SecretFacts& copy = observed.keyring;
  const KeyRotation& now = rotation_of(observed);
  const Json old_key = key_in(copy, api::kKeySlurm), new_key = key_in(copy, api::kKeyOther);
  const kube::ObjectMeta& meta = *copy.meta;
  const std::string made_with = made_with_key(observed);
  return write_keyring(observed, "switch", "every daemon has both keys, and login pods sign with the new one",
                       KeyRotation{.id = now.id,
                                   .step = KeyStep::kSwitched,
                                   .to = now.to,
                                   .other_note = std::string(meta.annotation(api::kAnnotationDataHash))},
                       {{std::string(api::kKeySlurm), {{"$copy", new_key}}},
                        {std::string(api::kKeyOther), {{"$copy", old_key}}},
                        {std::string(api::kKeyJwks), jwks(new_key, old_key)}},
                       {{std::string(api::kAnnotationSlurmKeyHash), now.to},
                        {std::string(api::kAnnotationDataHash), now.other_note},
                        {std::string(api::kAnnotationMadeWithKey), made_with.empty() ? copy.digest : made_with}});
}

plan::Step leave_alone(const Observed& observed) {
  const KeyRotation& now = rotation_of(observed);
  return write_keyring(observed, "retire", "every daemon signs with the new key, and what the old one has signed has expired",
                       KeyRotation{.id = now.id, .step = KeyStep::kAlone, .to = now.to}, without_jwks());
}

plan::Step end_rotation(const Observed& observed) {
  return write_keyring(observed, "end rotation of", "every daemon has the new key alone", std::nullopt, Json::object());
}

const char* step_text(KeyStep step) {
  switch (step) {
    case KeyStep::kBoth:
      return "step 1 of 4, all daemons learn the new key and sign with the previous one";
    case KeyStep::kLogins:
      return "step 2 of 4, new login pods sign with the new key";
    case KeyStep::kSwitched:
      return "step 3 of 4, all daemons sign with the new key and know the previous one";
    case KeyStep::kAlone:
      return "step 4 of 4, all daemons forget the previous key";
  }
  return "";
}

/// True if slurmctld has loaded the files of this step and notified the slurmds. False if the clock was set back after that.
bool has_told(const KeyRotation& rotation, const std::string& slurmctld, core::WallTime now) {
  return rotation.loaded_at && rotation.loaded_by == slurmctld && now >= *rotation.loaded_at;
}

/// The keys with which login pods sign.
enum class Logins {
  kFormer,  ///< A login pod has the earlier key or does not show which key it has.
  kStart,   ///< A login pod is about to start with the new key, according to its template.
  kNew,
};

/// Returns the key with which login pods sign. Adds to `waits` the login pods for which the rotation waits.
Logins await_logins(const Observed& observed, std::vector<std::string>& waits) {
  const KeyRotation& now = rotation_of(observed);
  std::vector<std::string> ending, former, starting, silent;
  for (const kube::PodPtr& pod : observed.login_pods) {
    const auto init = std::ranges::find_if(
        pod->containers, [](const kube::ContainerState& container) { return container.init && container.name == kInitConf; });
    if (!may_have_read(*pod) || (init != pod->containers.end() && init->message == now.id)) continue;
    const bool made_with_new = pod->meta.annotation(api::kAnnotationSlurmKeyHash) == now.to;
    const bool has_begun = init != pod->containers.end() && init->started_once;
    auto& kind = pod->meta.terminating() ? ending : !made_with_new ? former : has_begun && pod->ready() ? silent : starting;
    kind.push_back(pod->meta.name);
  }
  if (!ending.empty())
    waits.push_back("the end of login pods with the previous key, which wait for the sessions on them: " + some_of(ending));
  if (!former.empty())
    waits.push_back("other login pods instead of those with the previous key (see their LoginSet, or delete them): " +
                    some_of(former));
  if (!starting.empty()) waits.push_back("login pods to start: " + some_of(starting));
  if (!silent.empty())
    waits.push_back(
        "the end of login pods whose container initconf does not report which key they have (delete them, or scale their "
        "LoginSet to 0): " +
        some_of(silent));
  if (!ending.empty() || !former.empty() || !silent.empty()) return Logins::kFormer;
  return starting.empty() ? Logins::kNew : Logins::kStart;
}

/// Returns the backups of slurmctld that are not known to have started with the files of this step.
std::vector<std::string> backups_behind(const Observed& observed) {
  const std::string generation = rotation_of(observed).generation();
  std::vector<std::string> out;
  int there = 0;
  for (const kube::PodPtr& pod : observed.backup_pods) {
    if (!may_have_read(*pod)) continue;
    if (pod->ready() && pod->meta.annotation(api::kAnnotationKeyGeneration) == generation) {
      ++there;
    } else {
      out.push_back(pod->meta.name);
    }
  }
  if (out.empty() && there < backups(observed)) out.emplace_back("one that is not there yet");
  return out;
}

/// Returns the next step. Requires that every daemon has loaded the files of the present step. nullopt: the next step has to
/// wait. If the next step waits until messages have expired, adds a text about this wait to `told`.
std::optional<plan::Step> next_step(const Observed& observed, Logins logins_have, std::string& told) {
  const KeyRotation& now = rotation_of(observed);
  if (now.step == KeyStep::kAlone) return end_rotation(observed);
  if (now.step == KeyStep::kBoth) return renew_logins(observed);
  const bool logins = now.step == KeyStep::kLogins;
  if (logins && now.logins_at && logins_have == Logins::kFormer) return note_logins(observed, std::nullopt);
  if (logins_have != Logins::kNew) return {};
  if (logins && !now.logins_at) return note_logins(observed, core::whole_seconds(observed.context.now));
  const core::WallTime due =
      logins ? std::max(*now.loaded_at, *now.logins_at) + kWithoutKidMayArrive : *now.loaded_at + kSignedMayArrive;
  if (observed.context.now >= due) return logins ? switch_keys(observed) : leave_alone(observed);
  told += ". Until " + core::format_rfc3339(due) + ", messages that were signed before may arrive";
  return {};
}

}  // namespace

Json key_in(const SecretFacts& secret, std::string_view key) {
  return {{"namespace", secret.meta->ns},
          {"name", secret.meta->name},
          {"key", key},
          {"uid", secret.meta->uid},
          {"resourceVersion", secret.meta->resource_version}};
}

std::string cannot_rotate(const Observed& observed) {
  if (observed.controller.spec.external) return "slurmctld, which is external";
  std::vector<std::string> out = in_the_way(observed);
  for (const SecretFacts* key : {&observed.keyring, &observed.slurm_key}) {
    if (key->usable() && key->size < kShortestKey)
      out.push_back(fmt::format("a key of {} bytes in Secret {}, where Slurm takes {} or more in slurm.jwks", key->size,
                                key->ref.secret, kShortestKey));
  }
  return joined(out);
}

plan::Step begin_rotation(const Observed& observed) {
  const SecretFacts& source = observed.slurm_key;
  const Json new_key = key_in(source, source.ref.key);
  const KeyRotation rotation{
      .id = std::to_string(std::chrono::duration_cast<std::chrono::seconds>(observed.context.now.since_epoch).count()),
      .step = KeyStep::kBoth,
      .to = source.digest,
      .other_note = keyring_note(observed.object->meta.uid, source.content)};
  return write_keyring(observed, "begin rotation of", "the key has changed, and daemons run", rotation,
                       {{std::string(api::kKeyOther), {{"$copy", new_key}}},
                        {std::string(api::kKeyJwks), jwks(key_in(observed.keyring, api::kKeySlurm), new_key)}});
}

Rotation plan_rotation(const Observed& observed) {
  const KeyRotation& now = rotation_of(observed);
  const SecretFacts& source = observed.slurm_key;
  Rotation out;
  out.told = step_text(now.step);
  if (observed.stopped) {
    out.told += ". Waiting for: " + joined(in_the_way(observed));
    return out;
  }
  if (now.step == KeyStep::kBoth && source.usable() && source.digest != now.to) {
    out.write = give_up(observed);
    return out;
  }
  std::vector<std::string> waits = in_the_way(observed), unrefreshed, failed, unloaded;
  const bool hindered = !waits.empty();
  core::WallTime refreshed{};
  for (const kube::PodPtr& pod : daemons(observed)) {
    if (!reads_jwks(*pod)) continue;
    const Witness witness = witness_in(*pod, now);
    if (!witness.done) {
      const bool may = witness.failed < kMostWitnesses && !pod->meta.terminating();
      if (!may && !witness.waits) failed.push_back(pod->meta.name);
      if (may && !witness.waits && out.witnesses.size() < kWitnessesPerPass)
        out.witnesses.push_back(add_witness(observed, *pod, witness.failed));
      unrefreshed.push_back(pod->meta.name);
      continue;
    }
    refreshed = std::max(refreshed, *witness.done);
    if (!is_slurmctld(*pod) && !has_loaded(observed, *pod, *witness.done)) unloaded.push_back(pod->meta.name);
  }
  if (!failed.empty())
    waits.push_back("the end of pods that do not report when their files are refreshed (delete them when no job runs there): " +
                    some_of(failed));
  const std::string slurmctld = uid_of_slurmctld(observed);
  if (!unrefreshed.empty()) {
    waits.push_back("kubelets to refresh the files of pods: " + some_of(unrefreshed));
  } else if (!slurmctld.empty()) {
    const bool told = has_told(now, slurmctld, observed.context.now);
    out.loads = (!told || !unloaded.empty()) && observed.context.now > refreshed + kBeginsToRegister;
    if (!told) waits.emplace_back("slurmctld to load the files");
    if (told && !unloaded.empty()) waits.push_back("slurmds to load the files: " + some_of(unloaded));
    const std::vector<std::string> behind = backups_behind(observed);
    if (!behind.empty()) waits.push_back("slurmctld's backups to start with the files: " + some_of(behind));
    const Logins logins = now.has_login_keys() ? await_logins(observed, waits) : Logins::kNew;
    if (told && unloaded.empty() && behind.empty() && !hindered) out.write = next_step(observed, logins, out.told);
  }
  if (!waits.empty()) out.told += ". Waiting for: " + joined(waits);
  return out;
}

void add_key_load(const Observed& observed, const ConfigState& state, const Rotation& rotation, plan::Plan& plan) {
  plan.wake_after(kKeyPoll, "daemons may have loaded their keys");
  if (!rotation.loads) return;
  KeyRotation noted = rotation_of(observed);
  const plan::StepId id{"load", "keys", noted.generation()};
  plan.remember(id);
  const std::string slurmctld = uid_of_slurmctld(observed);
  // A reconfigure interrupts every daemon for a moment, even if the reconfigure changes nothing. So there is a pause between
  // attempts.
  const auto last = observed.context.outcomes.find(id);
  if (last != observed.context.outcomes.end()) {
    const core::Duration pause = wait_of_try(last->second.count, kLoadAgain, kLongestLoadAgain);
    if (observed.context.mono - last->second.last < pause) return;
  }
  if (held_back(observed, state)) return plan.wake_after(kPrologPoll, kWaitsForProlog);
  plan::Lane& lane = plan.lane("load");
  lane.then()
      .add(look_for_prologs(observed, state))
      .then()
      .add({id, "daemons are to load the keys of this step", slurm::reconfigure(observed.cluster)});
  noted.loaded_at = core::whole_seconds(observed.context.now);
  noted.loaded_by = slurmctld;
  lane.then().add(write_keyring(observed, "note", "slurmctld has loaded the keys of this step", noted, Json::object()));
}

}  // namespace op::controller
