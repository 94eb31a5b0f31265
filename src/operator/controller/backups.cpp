#include "operator/controller/backups.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/well_known.hpp"
#include "kube/acts.hpp"
#include "kube/apply_helper.hpp"
#include "operator/common/check.hpp"
#include "operator/common/children.hpp"
#include "operator/controller/build.hpp"
#include "operator/controller/prologs.hpp"
#include "operator/controller/release.hpp"

namespace op::controller {
namespace {

constexpr const char* kCondition = "BackupsReady";
constexpr const char* kOtherSlurmctlds = "OtherSlurmctlds";

/// True if the pod is ready and not terminating.
bool stands_by(const kube::PodPtr& pod) {
  return !pod->meta.terminating() && pod->ready();
}

bool as_wanted(const Observed& observed, const kube::PodPtr& pod) {
  const std::string revision = core::get_string(observed.backup_set->body, {"status", "updateRevision"});
  return stands_by(pod) && pod->meta.label(api::kLabelRevisionHash) == revision;
}

/// True if Kubernetes has processed the StatefulSet's present spec, or if the status does not show which spec was processed.
bool seen_by_kubernetes(const kube::Object& set) {
  const std::int64_t seen = core::get_int(set.body, {"status", "observedGeneration"});
  return seen == 0 || seen == set.meta.generation;
}

std::vector<std::string> names_of(const std::vector<kube::PodPtr>& pods, bool (*counts)(const kube::PodPtr&)) {
  std::vector<std::string> out;
  for (const kube::PodPtr& pod : pods) {
    if (counts(pod)) out.push_back(pod->meta.name);
  }
  std::ranges::sort(out);
  return out;
}

/// The time that the primary has to start after its backups were deleted. Includes the minute in which the serving backup can
/// still write its state.
constexpr core::Duration kHandOver{120000};
/// How long the operator waits until Slurm shows whether a backup serves.
constexpr core::Duration kUnheard{60000};

bool has_begun(const kube::PodRecord& pod, std::string_view container) {
  return std::ranges::any_of(pod.containers, [&](const kube::ContainerState& state) {
    return state.name == container && state.started_once && !state.ready && state.waiting_reason.empty();
  });
}

/// Returns the primary's pod if it is not ready. Null: the pod is ready or does not exist.
const kube::PodRecord* primary_to_be(const Observed& observed) {
  for (const kube::PodPtr& pod : observed.pods) {
    if (!pod->meta.terminating() && !pod->ready()) return pod.get();
  }
  return nullptr;
}

/// Returns when the backups began to hand over to this pod of the primary, according to the annotation of the backups'
/// StatefulSet. nullopt: the backups have not begun.
std::optional<core::WallTime> noted_hand_over(const Observed& observed, const kube::PodRecord& primary) {
  if (!observed.backup_set) return {};
  const std::string_view note = observed.backup_set->meta.annotation(api::kAnnotationHandedOver);
  const std::size_t blank = note.find(' ');
  if (blank == std::string_view::npos || note.substr(0, blank) != primary.meta.uid) return {};
  const auto at = core::parse_rfc3339(note.substr(blank + 1));
  return at ? std::optional(*at) : std::nullopt;
}

/// Returns since when the condition BackupsReady has been False. nullopt: the condition is not False.
std::optional<core::WallTime> false_since(const Observed& observed) {
  const api::Condition* before = api::find_condition(observed.controller.status.conditions, kCondition);
  return before != nullptr && before->status == api::ConditionStatus::kFalse ? before->last_transition_time : std::nullopt;
}

/// Returns since when the backups have been handing over, or the present time if they should begin now. nullopt: the backups
/// should not hand over. They hand over only once for each pod of the primary, because a pod also seems to wait if its machine
/// is lost.
std::optional<core::WallTime> hands_over_since(const Observed& observed) {
  const kube::PodRecord* primary = primary_to_be(observed);
  if (primary == nullptr) return {};
  const core::WallTime now = observed.context.now;
  if (const auto noted = noted_hand_over(observed, *primary)) return now - *noted < kHandOver ? noted : std::nullopt;
  if (!has_begun(*primary, kWaitBackup)) return {};
  // If Slurm does not show whether a backup serves, a waiting primary is evidence: its init container watches the backup's
  // heartbeat.
  const auto since = false_since(observed);
  const bool unheard = observed.restapis.empty() || (since && now - *since >= kUnheard);
  return backup_serves(observed) || unheard ? std::optional(now) : std::nullopt;
}

/// True if the primary still waits after the hand-over. The operator then takes no further action.
bool waits_in_vain(const Observed& observed) {
  const kube::PodRecord* primary = primary_to_be(observed);
  return primary != nullptr && noted_hand_over(observed, *primary) && has_begun(*primary, kWaitBackup) &&
         !hands_over_since(observed);
}

}  // namespace

int backups(const Observed& observed) {
  return backups_of(observed.controller.spec);
}

std::vector<std::string> addressed_pods(const Observed& observed) {
  const int others = backups(observed);
  return others > 0 ? slurmctld_pods(observed.object->meta.name, others) : std::vector<std::string>{};
}

bool primary_ready(const Observed& observed) {
  return std::ranges::any_of(observed.pods, stands_by);
}

bool backup_serves(const Observed& observed) {
  return !primary_ready(observed) && observed.snapshot && observed.snapshot->complete() &&
         std::ranges::any_of(observed.backup_pods, stands_by);
}

bool backup_hands_over(const Observed& observed) {
  return hands_over_since(observed).has_value();
}

bool stale_backup(const Observed& observed, const ConfigState& state) {
  // If a backup crashes with the offered content, no backup counts as stale: the rollout tries the content on the primary.
  const bool crashes = std::ranges::any_of(observed.backup_pods, [&](const kube::PodPtr& pod) {
    return pod->meta.annotation(api::kAnnotationSlurmConfigHash) == state.offered_hash &&
           std::ranges::any_of(pod->containers, [](const kube::ContainerState& container) {
             return container.name == kAppController && container.crashed;
           });
  });
  return !crashes && std::ranges::any_of(observed.backup_pods, [&](const kube::PodPtr& pod) {
    return !pod->meta.terminating() && pod->meta.annotation(api::kAnnotationSlurmConfigHash) != state.offered_hash;
  });
}

bool primary_may_restart(const Observed& observed, const ConfigState& state) {
  if (backups(observed) == 0 || !primary_ready(observed)) return true;
  if (changes_release(observed, state)) return observed.backup_pods.empty();
  if (!observed.backup_set || !seen_by_kubernetes(*observed.backup_set)) return false;
  const auto ready = std::ranges::count_if(observed.backup_pods, [&](const auto& pod) { return as_wanted(observed, pod); });
  return ready >= backups(observed);
}

std::optional<OtherSlurmctlds> find_other_slurmctlds(const Observed& observed) {
  // If the operator has applied the StatefulSet, it is ours: the operator reduces it to one pod if somebody scales it. The
  // StatefulSet is no longer ours if the Go operator has adopted it since. Only pods of the Go operator have the label
  // kLabelControllerActive.
  const kube::ObjectPtr& set = observed.stateful_set;
  if (!set || set->meta.terminating()) return {};
  const bool labelled = std::ranges::any_of(
      observed.pods, [](const kube::PodPtr& pod) { return !pod->meta.label(api::kLabelControllerActive).empty(); });
  if (!set->meta.annotation(kube::kIntentHash).empty() && !labelled) return {};
  const std::string first = set->meta.name + "-0";
  std::vector<std::string> others;
  bool serves = false;
  for (const kube::PodPtr& pod : observed.pods) {
    if (pod->meta.name == first) {
      serves = stands_by(pod) && pod->meta.label(api::kLabelControllerActive) == "true";
    } else if (pod->meta.name.starts_with(set->meta.name + "-")) {
      others.push_back(pod->meta.name);
    }
  }
  const std::int64_t replicas = core::get_int(set->body, {"spec", "replicas"}, 1);
  if (replicas <= 1 && others.empty()) return {};
  std::ranges::sort(others);
  const std::string many =
      fmt::format("StatefulSet {}, which another operator created, runs more than one slurmctld", set->meta.name);
  const std::string kept = "Nothing of slurmctld is changed until it runs alone";
  if (replicas <= 1) {
    return OtherSlurmctlds{
        {kOtherSlurmctlds, fmt::format("{}: waiting for {} to end. {}", many, some_of(others), kept), Problem::Kind::kComing},
        {}};
  }
  if (!serves) {
    return OtherSlurmctlds{
        {kOtherSlurmctlds,
         fmt::format("{}, and {} is not ready, or does not have the label {}=true, which says that it serves. {}. "
                     "When it serves, run `kubectl -n {} scale statefulset {} --replicas=1`",
                     many, first, api::kLabelControllerActive, kept, set->meta.ns, set->meta.name)},
        {}};
  }
  core::Json operations = core::Json::array({{{"op", "test"}, {"path", "/spec/replicas"}, {"value", replicas}},
                                             {{"op", "replace"}, {"path", "/spec/replicas"}, {"value", 1}}});
  return OtherSlurmctlds{
      {kOtherSlurmctlds, fmt::format("{}: all except {}, which serves, are scaled down. {}", many, first, kept),
       Problem::Kind::kComing},
      plan::Step{
          {"scale", "StatefulSet", set->meta.name},
          "the standby slurmctlds must be backups that this operator runs, and " + first + " serves",
          kube::patch_any_version(kube::resources::kStatefulSet, set->meta, std::move(operations), kube::PatchType::kJson)}};
}

void plan_backup_network(Draft& draft, plan::Lane& lane) {
  const Observed& observed = draft.observed;
  const std::vector<std::string> pods = addressed_pods(observed);
  for (const std::string& pod : pods) {
    const auto there = observed.slurmctld_services.find(pod);
    lane.add(apply_step(kube::resources::kService, build_pod_service(observed, pod),
                        there == observed.slurmctld_services.end() ? nullptr : there->second.get(), kManagerController));
  }
  if (pods.empty()) return;
  draft.plan.lane("pdb").add(apply_step(kube::resources::kPodDisruptionBudget, build_slurmctld_pdb(observed),
                                        observed.slurmctld_pdb.get(), kManagerController));
}

bool plan_backups(Draft& draft, plan::Lane& lane, const ConfigState& state, const std::string& slurm_key_digest) {
  const Observed& observed = draft.observed;
  const kube::PodRecord* primary = primary_to_be(observed);
  const std::optional<core::WallTime> over = hands_over_since(observed);
  const std::optional<core::WallTime> noted = primary != nullptr ? noted_hand_over(observed, *primary) : std::nullopt;
  if (observed.backup_set && !primary_ready(observed) && std::ranges::any_of(observed.backup_pods, stands_by)) {
    // A backup might be serving. The primary must not start before the operator knows whether a backup serves.
    if (!over) {
      const auto since = false_since(observed);
      const core::Duration left = since ? *since + kUnheard - observed.context.now : core::Duration{0};
      if (left > core::Duration{0}) draft.plan.wake_after(left, "the waiting primary then starts without an answer of Slurm");
      return false;
    }
    if (!noted && held_back(observed, state)) {
      draft.plan.wake_after(kPrologPoll, kWaitsForProlog);
      return false;
    }
  }
  core::Json set = build_backup_set(observed, state, slurm_key_digest);
  // A backup of another release cannot communicate with the primary, and would take over while the primary serves.
  if (over || changes_release(observed, state)) set["spec"]["replicas"] = 0;
  if (const std::optional<core::WallTime> at = over ? over : noted) {
    set["metadata"]["annotations"][std::string(api::kAnnotationHandedOver)] =
        primary->meta.uid + " " + core::format_rfc3339(*at);
    const core::Duration left = *at + kHandOver - observed.context.now;
    if (left > core::Duration{0}) draft.plan.wake_after(left, "the backups start again then");
  }
  std::optional<plan::Step> apply =
      apply_step(kube::resources::kStatefulSet, set, observed.backup_set.get(), kManagerController);
  const bool changes = apply.has_value();
  if (changes && over && !noted) lane.add(look_for_prologs(observed, state));
  lane.then();
  lane.add(make_way_step(kube::resources::kStatefulSet, set, observed.backup_set.get(), observed.context.outcomes));
  lane.then();
  lane.add(std::move(apply));
  lane.then();
  return changes;
}

void set_backups_condition(Conditions& conditions, Draft& draft) {
  constexpr core::Duration kOverdue{60000};
  const Observed& observed = draft.observed;
  const int wanted = backups(observed);
  if (wanted == 0) return;
  const std::string primary = addressed_pods(observed).front();
  const std::vector<std::string> ready = names_of(observed.backup_pods, stands_by);
  std::string who = primary + " is primary";
  if (!primary_ready(observed)) {
    const std::string one = (ready.size() > 1 ? "one of " : "") + some_of(ready);
    who = primary + " is not ready, and " +
          (ready.empty() ? "no backup is"
           : backup_serves(observed)
               ? "Slurm is served by " + one + (backup_hands_over(observed) ? ", which will be stopped" : "")
               : one + " is taking over");
    if (waits_in_vain(observed))
      who += "; the primary still waits for the end of that backup: to try again, delete the pod " + primary;
  }
  const bool all = static_cast<int>(ready.size()) >= wanted;
  const std::string text = fmt::format("{}; {} of {} backups {} ready", who, ready.size(), wanted, wanted > 1 ? "are" : "is");
  conditions.set(kCondition, all && primary_ready(observed),
                 !all                      ? "BackupNotReady"
                 : primary_ready(observed) ? "Ready"
                                           : "FailedOver",
                 text);
  if (waits_in_vain(observed)) {
    draft.problems.push_back({"FailedOver", text});
  } else if (!primary_ready(observed) && !ready.empty()) {
    draft.problems.push_back({"FailedOver", text, Problem::Kind::kComing});
  }
  append(draft.problems, pod_problems(observed.backup_pods));
  append(draft.problems, refused_files(observed.backup_pods));
  if (all) return;
  // Backups are replaced with each configuration, so a backup that is not ready for a short time is no error.
  const auto since = false_since(observed);
  const core::Duration left = since ? kOverdue - (observed.context.now - *since) : kOverdue;
  if (left > core::Duration{0}) {
    draft.problems.push_back({"BackupNotReady", text, Problem::Kind::kComing});
    draft.plan.wake_after(std::min(left, kOverdue), "a backup is overdue then");
  } else {
    draft.problems.push_back({"BackupNotReady", text + ": a failure of the primary is an outage until a backup is ready"});
  }
}

}  // namespace op::controller
