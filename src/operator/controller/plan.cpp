#include "operator/controller/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/well_known.hpp"
#include "kube/acts.hpp"
#include "operator/common/check.hpp"
#include "operator/common/children.hpp"
#include "operator/common/one_pod.hpp"
#include "operator/common/slinky.hpp"
#include "operator/controller/accounting.hpp"
#include "operator/controller/backups.hpp"
#include "operator/controller/build.hpp"
#include "operator/controller/cluster_number.hpp"
#include "operator/controller/config.hpp"
#include "operator/controller/draft.hpp"
#include "operator/controller/keyring.hpp"
#include "operator/controller/metrics.hpp"
#include "operator/controller/places.hpp"
#include "operator/controller/prologs.hpp"
#include "operator/controller/release.hpp"
#include "operator/controller/rollout.hpp"
#include "operator/controller/starting.hpp"
#include "operator/controller/usage_missing.hpp"
#include "slinky/workers.hpp"
#include "slurm/acts.hpp"

namespace op::controller {
namespace {

constexpr int kSlurmKeyBytes = 1024;
constexpr const char* kWithheld = "Withheld";
constexpr int kJwtKeyBytes = 32;

// ---- running ----

/// True if the keyring might have the key but was not read yet, because each Secret has a watch of its own.
bool copy_unknown(const Observed& observed, const SecretFacts& key) {
  return &key == &observed.slurm_key && observed.keyring.presence == kube::Presence::kUnknown;
}

/// True if a generated key is gone while the cluster runs with this key. slurmctld needs both keys, and workers need the
/// auth/slurm key. Daemons with a new key would reject the messages of daemons with the lost key.
bool lost(const Observed& observed, const SecretFacts& key) {
  if (!key.ref.generated || key.presence != kube::Presence::kAbsent || copy_unknown(observed, key)) return false;
  if (&key == &observed.slurm_key && !restored_key(observed).is_null()) return false;
  if (&key == &observed.slurm_key && !observed.workers.empty()) return true;
  if (!observed.stateful_set) return false;
  // A StatefulSet of an earlier Controller of this name does not count. That Controller was deleted with its keys, and
  // Kubernetes is about to garbage-collect its StatefulSet.
  const kube::OwnerReference* owner = observed.stateful_set->meta.controller_owner();
  return owner == nullptr || owner->uid == observed.object->meta.uid;
}

void plan_keys(Draft& draft) {
  constexpr core::Duration kMayHaveEnded{30000};
  const Observed& observed = draft.observed;
  const auto generate = [&](const SecretFacts& key, int bytes) {
    if (!key.ref.generated || key.presence != kube::Presence::kAbsent || copy_unknown(observed, key)) return;
    // The deletion of a worker does not start a pass for the Controller.
    if (lost(observed, key)) return draft.plan.wake_after(kMayHaveEnded, "Secret " + key.ref.secret + " may be recreated");
    // A key is generated only if the Secret does not exist. An existing key is never replaced, because slurmctld's state and
    // the workers depend on that key.
    core::Json recipe = &key == &observed.slurm_key ? restored_key(observed) : nullptr;
    const char* why =
        recipe.is_null() ? "no key is named, and none was generated yet" : "it is gone, and daemons have its copy";
    if (recipe.is_null()) recipe = {{"$generate", {{"bytes", bytes}}}};
    draft.plan.lane("keys").add(
        {{"create", "Secret", key.ref.secret},
         why,
         kube::create(kube::resources::kSecret, build_key_secret(observed, key.ref, std::move(recipe)))});
  };
  generate(observed.slurm_key, kSlurmKeyBytes);
  generate(observed.jwt_key, kJwtKeyBytes);
}

void plan_network(Draft& draft) {
  const Observed& observed = draft.observed;
  plan::Lane& lane = draft.plan.lane("network");
  const auto want = [&](const kube::Resource& resource, core::Json intent, const kube::ObjectPtr& there) {
    lane.add(apply_step(resource, std::move(intent), there.get(), kManagerController));
  };
  want(kube::resources::kService, build_service(observed), observed.service);
  want(kube::resources::kService, build_internal_service(observed), observed.internal_service);
  plan_backup_network(draft, lane);
}

std::string refusal_text(const Observed& observed, const ConfigState& state) {
  return "slurmctld refuses the configuration, and keeps the previous one: " + state.refused_reason + topology_hint(observed) +
         log_hint(observed, state.refused_reason);
}

/// True if slurmctld refused the wanted content and does not run with it. False if new answers of Slurm have made the wanted
/// content equal to the accepted content again.
bool is_refused(const ConfigState& state, const Rendered& wanted) {
  return state.refuses(wanted) && wanted.hash != state.accepted_hash;
}

/// True if slurmctld needs a restart to move from the content `before` to the content `after`.
bool takes_restart(const std::map<std::string, std::string>& before, const std::map<std::string, std::string>& after) {
  // slurmctld needs a new pod to join another slurmdbd: see accounting.hpp.
  return restart_digest(slurm_conf(before)) != restart_digest(slurm_conf(after)) ||
         slurmdbd_of(slurm_conf(before)) != slurmdbd_of(slurm_conf(after));
}

void tell_config_changes(Draft& draft, const ConfigState& now, const ConfigState& next) {
  if (auto event = tell_cut_short(draft.observed, now, next)) draft.plan.lane("events").add(std::move(*event));
  // This is no new refusal if the same content is refused again, or if other content for the same request is refused.
  const bool refused_now = now.refused_hash.empty() || next.refused_at != now.refused_at;
  if (!next.refused_hash.empty() && next.refused_hash != now.refused_hash && refused_now) {
    draft.plan.lane("events").add(event_step(resources::kController, draft.observed.object->meta, "Warning", "ConfigRefused",
                                             "Reconfigure", refusal_text(draft.observed, next)));
  }
  if (next.accepted_hash != now.accepted_hash && !now.accepted_hash.empty()) {
    draft.plan.lane("events").add(event_step(resources::kController, draft.observed.object->meta, "Normal", "Reconfigured",
                                             "Reconfigure",
                                             takes_restart(now.accepted_files(), next.accepted_files())
                                                 ? "slurmctld has loaded the new configuration, for which it was restarted"
                                                 : "slurmctld has loaded the new configuration, which took no restart"));
  }
}

/// True if a new pod template would end a slurmctld that works correctly.
bool ends_slurmctld(const Observed& observed) {
  return observed.stateful_set && has_state(observed) && !slurmctld_crashes(observed);
}

/// Applies slurmctld's StatefulSet, unless a new pod would lose jobs. A changed template replaces the pod. If `renew` is set,
/// adds `renew` before the apply step. `state`: the ConfigMap's content after this pass. `backups_change`: this pass changes
/// backups, so a ready primary has to wait.
void plan_stateful_set(Draft& draft, plan::Lane& lane, const core::Json& set, std::optional<plan::Step> renew,
                       const ConfigState& state, bool backups_change) {
  constexpr core::Duration kLookAgain{10000};
  const Observed& observed = draft.observed;
  const kube::Object* there = observed.stateful_set.get();
  std::optional<plan::Step> apply = apply_step(kube::resources::kStatefulSet, set, there, kManagerController);
  const bool replaces = (apply || renew) && ends_slurmctld(observed);
  if (replaces && held_back(observed, state)) return draft.plan.wake_after(kPrologPoll, kWaitsForProlog);
  if (apply && there != nullptr && primary_ready(observed) && (backups_change || !primary_may_restart(observed, state))) {
    draft.waiting = changes_release(observed, state)
                        ? "slurmctld's pod is replaced by one of another release of Slurm when no backup runs any more"
                        : "slurmctld's pod is replaced when its backups have been, and are ready";
    return;
  }
  if (!apply || !jobs_at_stake(observed)) {
    if (replaces) {
      lane.add(look_for_prologs(observed, state));
      lane.then();
    }
    // A job may have been submitted since the last snapshot.
    if ((apply || renew) && state_at_stake(observed) && !observed.restapis.empty()) {
      lane.add({{"look for", "jobs"},
                "slurmctld's pod must be replaced, and its state is lost with it",
                slurm::confirm_no_jobs(observed.cluster)});
      lane.then();
    }
    lane.add(std::move(renew));
    lane.then();
    lane.add(make_way_step(kube::resources::kStatefulSet, set, there, observed.context.outcomes));
    lane.then();
    lane.add(std::move(apply));
    return;
  }
  draft.plan.wake_after(kLookAgain, "jobs prevent the replacement of slurmctld's pod");
  // The message does not have the number of jobs, because each new message creates an event.
  draft.problems.push_back(
      {"RestartWithheld",
       "slurmctld's pod has to be replaced, because its template or a key has changed, but all jobs would be lost with its "
       "state, because " +
           std::string(claim_goes(observed) ? "the claim of its volume has been deleted"
                                            : "spec.persistence.enabled is false") +
           ". It will be replaced when " +
           std::string(observed.restapis.empty() ? "a RestApi shows that there are no jobs, when no worker is left"
                                                 : "no jobs are left") +
           ", or when the Controller has the annotation " + std::string(api::kAnnotationLoseJobs) + ": \"true\""});
}

/// Returns the step that writes copies of the user's files to the ConfigMap `name`. `content`: the content with these files.
/// `there`: the existing ConfigMap, or null. The step removes data keys that somebody else has added, because slurmctld would
/// find these files in its /etc/slurm.
std::optional<plan::Step> keep_copies(const Observed& observed, const ConfigState& state, const std::string& name,
                                      const kube::ObjectPtr& there, const std::map<std::string, std::string>& content) {
  if (!there && !mounts_copies(observed, state)) return {};
  // While the files are unknown, their copies do not change, because slurmctld might need these copies.
  if (!content.empty() && !knows_files(content)) return {};
  const core::Json wanted = build_file_copies(observed, name, content);
  auto apply = apply_step(kube::resources::kConfigMap, wanted, there.get(), kManagerController);
  if (apply || !there || there->meta.terminating()) return apply;
  core::Json strays = core::Json::object();
  for (const char* field : {"data", "binaryData"}) {
    const core::Json* members = core::find(there->body, {field});
    if (members == nullptr || !members->is_object() || members->empty()) continue;
    if (core::find(wanted, {field}) == nullptr) {
      strays[field] = nullptr;
      continue;
    }
    for (const auto& [file, text] : members->items()) {
      if (core::find(wanted, {field, file}) == nullptr) strays[field][file] = nullptr;
    }
  }
  if (strays.empty()) return {};
  return plan::Step{{"remove foreign files from", "ConfigMap", name},
                    "somebody has added files that slurmctld must not read",
                    kube::patch_any_version(kube::resources::kConfigMap, there->meta, std::move(strays))};
}

/// Plans the ConfigMaps and StatefulSets. Returns the next state for the ConfigMap "X-config" and the wanted configuration.
std::pair<ConfigState, Rendered> plan_pod(Draft& draft, Keyring& keyring) {
  const Observed& observed = draft.observed;
  const ConfigState now = read_config_state(observed);
  const auto render = [&](const ConfigState& state) { return render_config(observed, state); };
  if ((observed.stopped || keyring.freezes) && now.exists() && observed.stateful_set) return {now, render(now)};
  ConfigState next = next_config_state(now, render, read_slurmctld(observed, now));
  Rendered wanted = render(next);
  const kube::OwnerReference* owner = observed.config_map ? observed.config_map->meta.controller_owner() : nullptr;
  const bool users = !own_map_named(observed).empty() && (owner == nullptr || owner->uid != observed.object->meta.uid);
  if (!next.exists() || users) return {std::move(next), std::move(wanted)};
  note_numbers(observed, next);
  add_crash_mark(observed, now, draft.plan);
  if (wanted.ok()) next.scripts_hash = scripts_digest(observed);

  // If keys or files are missing, the kubelet would retry the pod at longer and longer intervals, so no pod is created yet. The
  // template could not be built either, because it has the digests of the keys.
  const bool users_known =
      !observed.controller.spec.sssd_conf_ref || observed.sssd_conf.usable() || !made_with_sssd_conf(observed).empty();
  const bool kept = wanted.keeps_pod && observed.stateful_set;
  const bool made = !keyring.digest.empty() && observed.jwt_key.usable() && users_known && !kept;
  const core::Json set = made ? build_stateful_set(observed, next, keyring.digest) : core::Json();
  const bool replaces =
      made && ends_slurmctld(observed) && !jobs_at_stake(observed) && primary_may_restart(observed, next) &&
      (keyring.renew || apply_step(kube::resources::kStatefulSet, set, observed.stateful_set.get(), kManagerController));
  // This retains the outcome of the reload until the ConfigMap shows that the load is done.
  if (now.starting_at) draft.plan.remember(reload_id(*now.starting_at));
  const std::set<std::string> ends =
      needs_load(observed, next) ? load_ends_jobs(observed, next, wanted) : std::set<std::string>{};
  const bool loads = replaces || backup_hands_over(observed) || (needs_load(observed, next) && ends.empty());
  note_starting(observed, next);
  note_places(observed, next, draft.plan);
  const bool loads_keys = keyring.rotation && keyring.rotation->loads;
  const bool loaded = now.accepted_hash != next.accepted_hash;
  note_prologs(observed, loads || needs_reload(observed, next) || loads_keys, loaded, next);

  plan::Lane& lane = draft.plan.lane("pod");
  auto config_map =
      apply_step(kube::resources::kConfigMap, build_config_map(observed, next), observed.config_map.get(), kManagerController);
  const std::string& name = observed.object->meta.name;
  auto copies = keep_copies(observed, next, config_files_name(name), observed.file_copies, next.offered);
  const auto apart = accepted_apart(next);
  auto accepted = keep_copies(observed, next, accepted_files_name(name), observed.accepted_copies, apart);
  const bool settled = !config_map && !copies;
  // Copies of the accepted content are written before the copies of the offered content are replaced. Copies of the accepted
  // content are deleted only when nothing refers to them any more.
  if (!apart.empty()) lane.add(std::exchange(accepted, {}));
  lane.then();
  lane.add(std::move(copies));
  lane.then();
  lane.add(std::move(config_map));
  tell_config_changes(draft, now, next);
  lane.then();
  lane.add(std::move(accepted));
  if (wanted.ok()) lane.add(script_refresh(observed, now));
  lane.then();
  if (made) {
    bool backups_change = false;
    if (backups(observed) > 0) {
      // All backups must find the renewed key when they start.
      lane.add(std::exchange(keyring.renew, {}));
      lane.then();
      backups_change = plan_backups(draft, lane, next, keyring.digest);
    }
    if (!backups_change || !backup_hands_over(observed))
      plan_stateful_set(draft, lane, set, std::move(keyring.renew), next, backups_change);
  }
  draft.plan.lane("release").add(tell_release(observed));
  if (draft.waiting.empty()) draft.plan.lane("mend").add(replace_pod_without_usage(observed, next));
  // While a restart waits for the backups, slurmctld loads nothing, because the content might need that restart.
  if (settled && draft.waiting.empty() && !stale_backup(observed, next)) {
    add_load_steps(observed, next, wanted, draft.plan);
    add_reload_step(observed, next, draft.plan);
    add_places_step(observed, next, draft.plan);
    if (keyring.rotation) add_key_load(observed, next, *keyring.rotation, draft.plan);
  }
  if (const auto due = next_try(next); due && *due > observed.context.now)
    draft.plan.wake_after(*due - observed.context.now, "what slurmctld refused is tried again");
  if (draft.waiting.empty() && !ends.empty()) {
    draft.waiting = fmt::format(
        "slurmctld has partition {} with jobs in it, and the new configuration lacks it: it is loaded when these jobs have "
        "ended, or at once with the annotation {}=partition/{}",
        *ends.begin(), api::kAnnotationRemoveNow, *ends.begin());
  }
  if (draft.waiting.empty() && awaits_load(observed, next)) draft.waiting = kNotLoaded;
  // The wait can also be for a starting job that only the check just before the load has found.
  if (const auto left = wait_left(observed, next)) draft.plan.wake_after(*left, kWaitsForProlog);
  // The end of a job causes no event that would start a pass.
  if (!next.cut_short.empty()) draft.plan.wake_after(kDoubtPoll, "jobs that were cut short may have ended");
  if (held_back(observed, next)) {
    draft.waiting = kWaitsForProlog;
    draft.plan.waits_on(observed.cluster);
  }
  watch_withheld(observed, wanted.withheld, draft.plan);
  return {std::move(next), std::move(wanted)};
}

void set_config_conditions(Conditions& conditions, const Observed& observed, const Rendered& wanted, const ConfigState& state) {
  if (!wanted.ok()) {
    std::string text;
    for (const Problem& problem : wanted.problems) text += (text.empty() ? "" : "; ") + problem.message;
    conditions.set("ConfigAccepted", false, wanted.problems.front().reason, text);
    conditions.set(api::kConditionReconfigured, false, wanted.problems.front().reason, text);
    return;
  }
  if (is_refused(state, wanted)) {
    const std::string text = refusal_text(observed, state);
    conditions.set("ConfigAccepted", false, "ConfigRefused", text);
    conditions.set(api::kConditionReconfigured, false, "ConfigRefused", text);
    return;
  }
  const auto blamed = std::ranges::count_if(state.left_out, [](const auto& item) { return !item.second.refusal.empty(); });
  const bool known = static_cast<std::size_t>(blamed) == state.left_out.size();
  // While a refused partition is offered once more, the condition does not change.
  const bool settled = state.offered_hash == state.accepted_hash || state.tries_partition();
  if (settled && state.offered_hash == wanted.hash && known) {
    std::string text;
    for (const auto& [name, item] : state.left_out) text += (text.empty() ? "" : ", ") + name;
    conditions.set("ConfigAccepted", text.empty(), text.empty() ? "Accepted" : "PartitionInvalid",
                   text.empty() ? "" : "slurmctld refuses the partition settings of NodeSets: " + text);
    const std::vector<Withheld> held = told_of(wanted.withheld);
    conditions.set(
        api::kConditionReconfigured, held.empty(), held.empty() ? "Loaded" : kWithheld,
        "slurmctld has configuration " + state.accepted_hash + (held.empty() ? "" : ", without the changes that are withheld"));
    return;
  }
  if (held_back(observed, state)) {
    conditions.set("ConfigAccepted", api::ConditionStatus::kUnknown, "WaitingForProlog", kWaitsForProlog);
    conditions.set(api::kConditionReconfigured, api::ConditionStatus::kUnknown, "WaitingForProlog", kWaitsForProlog);
    return;
  }
  const std::string unseen = "no RestApi refers to this Controller, so the operator cannot see what slurmctld has loaded; ";
  const std::string loads = state.accepted_hash.empty()                           ? ""
                            : takes_restart(state.accepted_files(), wanted.files) ? ": slurmctld has to restart for that"
                                                                                  : ": a reconfigure is enough";
  const std::string why =
      !observed.restapis.empty() ? kNotLoaded + loads
      : observed.controller.spec.inplace_reconfigure
          ? unseen + "changes are loaded by the sidecar reconfigure, whose log shows whether slurmctld refuses them"
          : unseen + "changes are loaded when slurmctld restarts";
  const std::string_view reason = observed.restapis.empty() ? "NoRestApi" : "Loading";
  conditions.set("ConfigAccepted", api::ConditionStatus::kUnknown, reason, why);
  conditions.set(api::kConditionReconfigured, api::ConditionStatus::kUnknown, reason, why);
}

/// Sets the condition StateInMemory, which warns in advance that a restart of the pod will lose slurmctld's job state.
void set_state_in_memory(Conditions& conditions, const Observed& observed) {
  if (observed.controller.spec.persistence.enabled) return;
  conditions.set(
      api::kConditionStateInMemory, true, "PersistenceDisabled",
      "spec.persistence.enabled is false: all jobs are lost when slurmctld's pod is replaced, or its Kubernetes node is "
      "lost or drained. The workers are replaced three minutes later, which ends what still runs on them");
}

/// Sets the condition ChangesWithheld if an item is withheld.
void set_withheld_condition(Conditions& conditions, Draft& draft, const Rendered& wanted) {
  const std::vector<Withheld> held = told_of(wanted.withheld);
  if (held.empty()) return;
  conditions.set("ChangesWithheld", true, kWithheld, describe(draft.observed, held));
  std::vector<std::string> slow, stuck;
  for (const Withheld& item : held) {
    const bool stays = item.unlimited || (item.unknown && draft.observed.restapis.empty());
    (stays ? stuck : slow).push_back(item.what);
  }
  if (!slow.empty())
    draft.problems.push_back(
        {kWithheld, "removed from the spec, but still needed by jobs: " + some_of(slow), Problem::Kind::kComing});
  if (!stuck.empty())
    draft.problems.push_back({kWithheld, "not removed automatically, see condition ChangesWithheld: " + some_of(stuck)});
}

void set_secrets_condition(Conditions& conditions, Draft& draft) {
  std::vector<Problem> found;
  const char* jwt_field = draft.observed.controller.spec.jwt_key_ref ? "spec.jwtKeyRef" : "spec.jwtHs256KeyRef";
  for (const auto& [key, field] :
       {std::pair(&draft.observed.slurm_key, "spec.slurmKeyRef"), {&draft.observed.jwt_key, jwt_field}}) {
    if (lost(draft.observed, *key)) {
      found.push_back(
          {"SecretMissing", "Secret " + draft.observed.object->meta.ns + "/" + key->ref.secret +
                                " was generated and is now missing, but running daemons still use its key: restore it, or "
                                "delete the Controller"});
    } else if (auto problem = key_problem(*key, draft.observed.object->meta.ns, field)) {
      found.push_back(std::move(*problem));
    }
  }
  if (draft.observed.controller.spec.sssd_conf_ref) {
    if (auto problem = key_problem(draft.observed.sssd_conf, draft.observed.object->meta.ns, "spec.sssdConfRef"))
      found.push_back(std::move(*problem));
  }
  std::string text;
  for (const Problem& problem : found) text += (text.empty() ? "" : "; ") + problem.message;
  conditions.set("SecretsReady", found.empty(), found.empty() ? "Ready" : found.front().reason, text);
  append(draft.problems, std::move(found));
}

const api::Condition* ready_before(const Observed& observed) {
  return api::find_condition(observed.controller.status.conditions, api::kConditionReady);
}

/// Reports a slurmctld that answers no request although its pod is ready because its port is open. Tolerates this for a while
/// after slurmctld has started.
std::optional<Problem> silence_of(const Observed& observed, plan::Plan& plan) {
  constexpr std::string_view kReason = "SlurmctldSilent";
  constexpr core::Duration kPatience{30000};
  const api::Condition* before = ready_before(observed);
  if (!primary_ready(observed) || !observed.snapshot || !observed.snapshot->silent() || before == nullptr) return {};
  if (before->status == api::ConditionStatus::kTrue && before->last_transition_time) {
    const core::Duration left = *before->last_transition_time + kPatience - observed.context.now;
    if (left > core::Duration{0}) {
      plan.wake_after(left, "slurmctld may have answered by then");
      return {};
    }
  } else if (before->reason != kReason) {
    return {};
  }
  return Problem{std::string(kReason), "slurmctld's port is open, but slurmrestd gets no answer from it: " +
                                           one_line(observed.snapshot->error) + ". Jobs that run go on. See slurmctld's log"};
}

void find_deleted_claim(Draft& draft) {
  if (!claim_goes(draft.observed)) return;
  draft.problems.push_back(
      {"ClaimDeleted", "PersistentVolumeClaim " + draft.observed.claim->meta.name +
                           " is being deleted, and will be gone when slurmctld's pod ends: Slurm then loses all jobs, "
                           "nodes and reservations. Let the jobs end before that, or copy the volume"});
}

/// Reports a PersistentVolumeClaim that is not bound. The problem is an error if the claim is Lost or if provisioning has
/// failed.
void find_unbound_claim(Draft& draft) {
  const Observed& observed = draft.observed;
  if (!observed.claim) return;
  const kube::ObjectMeta& meta = observed.claim->meta;
  const std::string phase = core::get_string(observed.claim->body, {"status", "phase"});
  if (phase.empty() || phase == "Bound") return;
  const std::string why =
      told_by_events(observed.context, ready_before(observed), "PersistentVolumeClaim", meta, "ProvisioningFailed", draft.plan)
          .value_or("");
  const bool wrong = phase == "Lost" || !why.empty();
  draft.problems.push_back({"ClaimPending",
                            "PersistentVolumeClaim " + meta.name + " is " + phase + (why.empty() ? "" : ": " + why),
                            wrong ? Problem::Kind::kWrong : Problem::Kind::kComing});
}

void plan_running(Draft& draft) {
  const Observed& observed = draft.observed;
  const kube::ObjectMeta& meta = observed.object->meta;
  plan_guard(draft);
  plan_keys(draft);
  plan_network(draft);
  plan_workers_objects(draft);
  plan_records(draft);
  Keyring keyring = plan_copy(draft);
  const auto [state, wanted] = plan_pod(draft, keyring);

  Conditions conditions = conditions_of(observed);
  set_config_conditions(conditions, observed, wanted, state);
  set_withheld_condition(conditions, draft, wanted);
  set_accounting_condition(conditions, observed, state, wanted);
  if (draft.waiting.empty()) draft.waiting = awaited_slurmdbd(observed, state);
  set_jobs_in_doubt(conditions, state);
  set_places_condition(conditions, observed, state, keyring.freezes);
  set_secrets_condition(conditions, draft);
  set_key_condition(conditions, draft, keyring);
  plan_service_monitor(observed, state, draft.plan);
  set_metrics_condition(conditions, observed, state,
                        wanted.ok() && state.offered_hash == wanted.hash && state.accepted_hash == wanted.hash);
  std::vector<std::string> ignored = api::fields_not_acted_on(observed.controller.spec);
  if (observed.controller.spec.metrics.enabled && !metrics_refused(observed, state).empty())
    ignored.emplace_back("spec.metrics.enabled");
  set_fields_not_acted_on(conditions, ignored);
  set_deletions_stopped(conditions, observed.stopped, observed.doubt);
  set_state_in_memory(conditions, observed);
  // The deletion of a worker's node record starts a pass only for the worker's own NodeSet, so the Controller checks
  // periodically.
  constexpr core::Duration kLookAgain{30000};
  if (std::ranges::find(wanted.warnings, kNodeSetNameTaken, &Problem::reason) != wanted.warnings.end())
    draft.plan.wake_after(kLookAgain, "a NodeSet's name may be free");
  if (std::ranges::find(wanted.warnings, kTableTooSmall, &Problem::reason) != wanted.warnings.end())
    draft.plan.wake_after(kLookAgain, "a table may have room");
  for (const auto* problems : {&wanted.problems, &wanted.warnings}) {
    for (const Problem& problem : *problems) {
      if (problem.reason == "ClusterNameTaken" || problem.reason == "AccountingKeyDiffers")
        draft.plan.wake_after(kLookAgain, "another cluster of the Accounting may have been deleted");
    }
  }
  if (wanted.topology_may_change) draft.plan.wake_after(kLookAgain, "Slurm nodes may have been given other places");
  // The next two problems cause other problems, so they are reported first.
  if (auto problem = start_problem(observed)) draft.problems.insert(draft.problems.begin(), std::move(*problem));
  if (auto problem = number_problem(observed, state)) draft.problems.insert(draft.problems.begin(), std::move(*problem));
  append(draft.problems, wanted.problems);
  append(draft.problems, wanted.warnings);
  if (wanted.ok() && is_refused(state, wanted)) {
    draft.problems.push_back({"ConfigRefused", refusal_text(observed, state)});
  }
  append(draft.problems, observed.missing);
  if (!observed.older_cluster.empty()) {
    draft.problems.push_back(
        {"ClusterNameTaken", "Controller " + observed.older_cluster + " is older and has the same cluster name, " +
                                 api::cluster_name(observed.controller.spec, meta.ns, meta.name) +
                                 ": delete this one, and create it again with a different spec.clusterName"});
    draft.plan.wake_after(kLookAgain, "a cluster's name may be free");
  }
  append(draft.problems, immutable_problems(observed));
  append(draft.problems, step_problems(without_refusals(observed.context.outcomes), draft.plan));
  std::optional<Problem> silence = silence_of(observed, draft.plan);
  const bool ready = (primary_ready(observed) || backup_serves(observed)) && !silence;
  append(draft.problems, pod_problems(observed.pods));
  append(draft.problems, refused_files(observed.pods));
  set_backups_condition(conditions, draft);
  if (ready) append(draft.problems, token_problems(observed));
  if (const auto problem = slurm_problem(observed.snapshot)) draft.problems.push_back(*problem);
  if (silence) {
    draft.blocked = true;
    draft.problems.insert(draft.problems.begin(), std::move(*silence));
  }
  find_deleted_claim(draft);
  if (!primary_ready(observed)) {
    if (auto lost = find_lost_pod(observed.context, observed.pods, kAppController, draft.plan)) {
      draft.blocked = draft.blocked || lost->wrong();
      if (lost->wrong()) {
        draft.problems.push_back(std::move(*lost));
      } else {
        draft.waiting = std::move(lost->message);
      }
    }
    find_unbound_claim(draft);
    if (auto missing = find_missing_pod(observed.context, ready_before(observed), observed.stateful_set.get(), observed.pods,
                                        draft.plan)) {
      draft.problems.push_back(std::move(*missing));
    }
  }
  plan_status(draft, std::move(conditions), ready);
}

// ---- Slurmctlds that the operator cannot run ----

void plan_invalid(Draft& draft, Problem problem) {
  Conditions conditions = conditions_of(draft.observed);
  if (draft.observed.parse_error.empty()) {
    set_fields_not_acted_on(conditions, api::fields_not_acted_on(draft.observed.controller.spec));
  }
  draft.problems.push_back(std::move(problem));
  draft.blocked = true;
  plan_status(draft, std::move(conditions), false);
}

/// Plans to scale down the slurmctlds of another operator until only one slurmctld is left.
void plan_other_slurmctlds(Draft& draft, OtherSlurmctlds others) {
  plan_guard(draft);
  if (!draft.observed.stopped) draft.plan.lane("pod").add(std::move(others.end));
  draft.blocked = others.problem.wrong();
  draft.problems.push_back(std::move(others.problem));
  append(draft.problems, step_problems(draft.observed.context.outcomes, draft.plan));
  plan_status(draft, conditions_of(draft.observed), primary_ready(draft.observed));
}

// ---- Deletion of the Controller ----

/// Deletes generated keys together with slurmctld's state, but only once the state's volume is certainly gone.
void plan_key_removal(Draft& draft) {
  constexpr core::Duration kReadClaimAgain{5000};
  const Observed& observed = draft.observed;
  const api::ControllerPersistence& persistence = observed.controller.spec.persistence;
  // A spec that cannot be parsed might name an existing claim, so the keys stay.
  if (!observed.parse_error.empty() || (persistence.enabled && !persistence.existing_claim.empty())) return;
  std::vector<const SecretFacts*> keys;
  for (const SecretFacts* key : {&observed.slurm_key, &observed.jwt_key}) {
    if (!key->ref.generated || !key->meta || key->meta->terminating()) continue;
    if (key->meta->label(api::kLabelInstance) == observed.object->meta.name) keys.push_back(key);
  }
  if (keys.empty()) return;
  // This reads the claim live: a user may have replaced the StatefulSet's claim by a claim with other labels, which no cache
  // has.
  const std::string claim = state_claim_name(observed.object->meta.name);
  const core::Result<core::Json>* left = read_live(draft, kube::resources::kPersistentVolumeClaim, claim);
  if (left == nullptr || *left) return;
  if (left->error().code != core::ErrorCode::kNotFound) {
    draft.waiting = "PersistentVolumeClaim " + claim + " cannot be read: " + left->error().message;
    return draft.plan.wake_after(kReadClaimAgain, "whether the state's volume is left decides about its keys");
  }
  for (const SecretFacts* key : keys) {
    draft.plan.lane("tidy").add({{"delete", "Secret", key->ref.secret},
                                 "it was generated for a cluster whose state is gone",
                                 kube::delete_object(kube::resources::kSecret, *key->meta)});
  }
}

void remove_finalizer(Draft& draft, const char* why) {
  if (auto act = kube::remove_finalizer(resources::kController, draft.observed.object->meta, api::kFinalizerController)) {
    draft.plan.lane("tidy").then().add({{"remove", "finalizer"}, why, std::move(act)});
  }
}

/// Deletes workers whose NodeSet is gone. The operator has to delete these workers, because the garbage collector is not
/// allowed to.
void delete_left_workers(Draft& draft) {
  constexpr std::size_t kPerPass = 128;
  const Observed& observed = draft.observed;
  for (const auto& [pod, ends] : observed.left_workers) {
    if (pod->meta.terminating() || !ends) continue;
    if (draft.plan.step_count() >= kPerPass) return draft.plan.wake_after(core::Duration{50}, "more workers to delete");
    draft.plan.lane("workers").add({{"delete", "Pod", pod->meta.key().str()},
                                    "the cluster is being deleted, and the worker's NodeSet no longer exists",
                                    kube::delete_pod(*pod, *ends)});
  }
}

/// True if the Controller is deleted with `kubectl delete --cascade=orphan`, so that the cluster stays. Kubernetes then sets
/// the finalizer "orphan" on the Controller, and removes the finalizer once the Controller's children have no owner any more.
/// After that, a child without an owner is the evidence: slurmctld's StatefulSet, or the workers' Service if slurmctld is
/// external. The child is read live, because its cache may be behind the Controllers' cache. nullopt: not known yet.
std::optional<bool> goes_alone(Draft& draft) {
  const kube::ObjectMeta& meta = draft.observed.object->meta;
  if (kube::has_finalizer(meta, "orphan")) return true;
  if (announces_end(*draft.observed.object)) return false;
  const core::Result<core::Json>* set =
      core::get_bool(draft.observed.object->body, {"spec", "external"})
          ? read_live(draft, kube::resources::kService, workers_service_name(meta.name))
          : read_live(draft, kube::resources::kStatefulSet, controller_object_name(meta.name));
  if (set == nullptr) return {};
  if (*set) return kube::parse_meta(**set).owners.empty();
  if (set->error().code == core::ErrorCode::kNotFound) return false;
  constexpr core::Duration kReadAgain{5000};
  draft.plan.wake_after(kReadAgain, "whether only the Controller is deleted decides about its cluster");
  return {};
}

void plan_end(Draft& draft) {
  const Observed& observed = draft.observed;
  const std::optional<bool> alone = goes_alone(draft);
  if (!alone) return;
  if (*alone) {
    draft.plan.intent.summary = "keep the cluster without its Controller";
    return remove_finalizer(draft, "it is deleted, and the objects that it owns are kept");
  }
  // Workers are deleted only after the Controller's status has announced the end of the cluster.
  if (announces_end(*observed.object) && !observed.stopped) delete_left_workers(draft);
  std::vector<std::string> nodesets, restapis;
  for (const NodeSetFacts& nodeset : observed.nodesets) {
    if (nodeset.terminating) nodesets.push_back(nodeset.object);
  }
  for (const RestApiFacts& restapi : observed.restapis) {
    if (restapi.terminating) restapis.push_back(restapi.name);
  }
  if (!observed.workers.empty()) {
    draft.waiting = "waiting for workers to end: " + some_of(observed.workers);
    const bool ends_any =
        std::ranges::any_of(observed.left_workers, [](const LeftWorker& worker) { return worker.ends.has_value(); });
    if (observed.nodesets.empty() && !ends_any) {
      draft.waiting += "; they have no NodeSet, so nothing deletes them: apply the NodeSet again, or delete the pods";
    }
  } else if (!nodesets.empty()) {
    draft.waiting = "waiting for NodeSets to be deleted: " + some_of(nodesets);
  } else if (!restapis.empty()) {
    draft.waiting = "waiting for RestApis to be deleted: " + some_of(restapis);
  }
  if (observed.stopped && draft.waiting.empty())
    draft.waiting = "waiting for the annotation " + std::string(api::kAnnotationStopDeletions) + " to be removed";
  draft.plan.intent.summary = "end the cluster";
  if (draft.waiting.empty()) plan_key_removal(draft);
  if (draft.waiting.empty()) return remove_finalizer(draft, "nothing depends on this slurmctld any more");
  draft.plan.intent.summary += ": " + draft.waiting;
  draft.plan.intent.pods = static_cast<int>(observed.workers.size());
  Conditions conditions = conditions_of(observed);
  set_deletions_stopped(conditions, observed.stopped, observed.doubt);
  draft.problems.push_back({kReasonTerminating, "the Controller is being deleted", Problem::Kind::kComing});
  plan_status(draft, std::move(conditions), false);
}

}  // namespace

plan::Plan plan(const Observed& observed) {
  const bool runs = observed.object && !observed.object->meta.terminating() && observed.parse_error.empty() &&
                    !observed.controller.spec.external && !find_other_slurmctlds(observed);
  if (const std::optional<HeldRelease> held = runs ? hold_release(observed) : std::nullopt) {
    Draft draft{held->observed, {}, {}, {}};
    draft.problems.push_back(held->problem);
    plan_running(draft);
    return std::move(draft.plan);
  }
  Draft draft{observed, {}, {}, {}};
  if (!observed.object) return draft.plan;
  if (observed.object->meta.terminating()) {
    plan_end(draft);
  } else if (!observed.parse_error.empty()) {
    plan_invalid(draft, {"Invalid", observed.parse_error});
  } else if (observed.controller.spec.external) {
    plan_external(draft);
  } else if (auto others = find_other_slurmctlds(observed)) {
    plan_other_slurmctlds(draft, std::move(*others));
  } else {
    plan_running(draft);
  }
  return std::move(draft.plan);
}

}  // namespace op::controller
