// Writes the status for users: counts, conditions, and events about states that last. The status is computed from the facts,
// and written only if it differs from the stored one.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "api/well_known.hpp"
#include "kube/acts.hpp"
#include "operator/common/check.hpp"
#include "operator/common/partition.hpp"
#include "operator/common/slinky.hpp"
#include "operator/nodeset/build_worker.hpp"
#include "operator/nodeset/parts.hpp"
#include "slinky/worker_names.hpp"
#include "slurm/acts.hpp"

namespace op::nodeset {
namespace {

using core::Json;

/// The minimum time between two writes that change only counts, which change often. Conditions are written at once.
constexpr core::Duration kCountsEvery{500};
/// A step that Slurm refuses because a node is busy is reported only after this number of refusals. For example, a reservation
/// may hold the node.
constexpr int kBusyShown = 20;
constexpr std::string_view kNotUsable = "NotUsable";
/// The number of names that a message lists.
constexpr std::size_t kNames = 3;
/// If a pod still exists this long after its grace period, its finalizers hold it.
constexpr core::Duration kHeld{60000};

api::NodeSetStatus count(const View& view, const PassResult& result, Draft& draft) {
  const Workers& workers = result.fates.workers;
  const api::NodeSetStatus& before = view.in.nodeset.status;
  api::NodeSetStatus out;
  for (const Worker& worker : workers) {
    if (worker.life == Life::kEnded) continue;
    ++out.replicas;
    if (worker.life == Life::kLive && worker.pod->meta.label(api::kLabelRevisionHash) == view.in.hash) ++out.updated_replicas;
    if (worker.pod->phase == "Running" && worker.pod->ready()) {
      ++out.ready_replicas;
      const std::optional<core::Duration> left = available_in(view, worker);
      if (left && left->count() == 0) ++out.available_replicas;
      if (left && left->count() > 0) draft.wake_after(*left, "minReadySeconds");
    }
    if (worker.record == nullptr) continue;
    const slurm::NodeState& state = worker.record->state;
    if (state.base == "IDLE") ++out.slurm_idle;
    if (state.base == "ALLOCATED" || state.base == "MIXED") ++out.slurm_allocated;
    if (state.base == "DOWN") ++out.slurm_down;
    if (state.has("DRAIN")) ++out.slurm_drain;
  }
  if (!slurm::has_answered(view.in.snapshot)) {
    // The counts are unknown, not zero. So the status keeps its last counts.
    out.slurm_idle = before.slurm_idle;
    out.slurm_allocated = before.slurm_allocated;
    out.slurm_down = before.slurm_down;
    out.slurm_drain = before.slurm_drain;
  }
  out.desired = view.desired;
  out.unavailable_replicas = std::max(0, out.replicas - out.available_replicas);
  out.observed_generation = view.in.meta().generation;
  out.nodeset_hash = view.in.hash.empty() ? before.nodeset_hash : view.in.hash;
  out.collision_count = before.collision_count;
  out.ordinal_to_node = result.pins;
  out.drains_to_restore = result.drains;
  out.selector = fmt::format("{}={},{}={}", api::kLabelInstance, view.in.meta().name, api::kLabelName, kAppWorker);
  return out;
}

/// Returns why a worker accepts no jobs: "cpu-1 is IDLE+DRAIN (bad disk)".
std::string why_unusable(const Worker& worker) {
  if (worker.record == nullptr) return worker.node + " is not registered in Slurm";
  std::string state = worker.record->state.base;
  for (const char* flag : {"DRAIN", "FAIL", "INVALID_REG", "NOT_RESPONDING"}) {
    if (worker.has_flag(flag)) state += std::string("+") + flag;
  }
  return worker.node + " is " + state + (worker.record->reason.empty() ? "" : " (" + worker.record->reason + ")");
}

std::string some(const std::vector<std::string>& items) {
  std::string out;
  for (std::size_t i = 0; i < std::min(items.size(), kNames); ++i) out += (i == 0 ? "" : ", ") + items[i];
  if (items.size() > kNames) out += fmt::format(" and {} more", items.size() - kNames);
  return out;
}

bool any_expects(const Workers& workers, Prospect prospect) {
  return std::ranges::any_of(workers, [&](const Worker& worker) { return worker.prospect == prospect; });
}

/// Reports workers that may be in Slurm under other names.
void tell_suspects(const Workers& workers, Draft& draft) {
  std::vector<std::string> texts;
  for (const Worker& worker : workers) {
    if (worker.prospect == Prospect::kElsewhere && !worker.goes()) texts.push_back(suspect_text(worker));
  }
  if (!texts.empty()) draft.wrong(kNotRegistered, some(texts));
}

/// Reports why wanted workers do not accept jobs. Returns true if each wanted worker is usable or set aside by users, but not
/// all of them are set aside.
bool judge_workers(const View& view, const Workers& workers, Draft& draft) {
  std::vector<std::string> starting, placeless, unusable, aside, refused, old_conf;
  int usable = 0;
  for (const Worker& worker : workers) {
    if (worker.life != Life::kLive || worker.goes()) continue;
    if (worker.record != nullptr && !worker.in_place &&
        has_other_conf(view, *worker.record, worker.pod->meta.label(api::kLabelRevisionHash)))
      old_conf.push_back(worker.node);
    if (!worker.ready()) {
      starting.push_back(worker.pod->meta.name);
    } else if (worker.usable()) {
      if (awaits_place(view, worker)) {
        placeless.push_back(worker.node);
      } else {
        ++usable;
      }
    } else {
      auto& list = set_aside(worker) ? aside : worker.has_flag("INVALID_REG") ? refused : unusable;
      list.push_back(why_unusable(worker));
    }
  }
  if (const auto left = view.slurm_shown_for(); left && left->count() > 0)
    draft.wake_after(*left, "Slurm's last answer becomes too old");
  if (!view.slurm_shows() && !workers.empty()) {
    const bool silent = view.in.snapshot == nullptr || view.in.snapshot->error.empty();
    draft.waiting("WaitingForSlurm", silent ? "waiting for Slurm" : "waiting for Slurm: " + view.in.snapshot->error);
    return false;
  }
  if (any_expects(workers, Prospect::kNoRoom) && view.goal == Goal::kServe) {
    draft.wrong(
        "TooManyNodes",
        fmt::format(
            "Slurm already has as many nodes as MaxNodeCount allows ({}), so more workers cannot register: scale in, or "
            "raise MaxNodeCount in spec.extraConf of Controller {}",
            *view.in.controller->max_nodes, view.in.controller->meta.name));
  }
  tell_suspects(workers, draft);
  if (any_expects(workers, Prospect::kStateLost) && view.goal != Goal::kEndAll) {
    core::WallTime last{};
    for (const Worker& worker : workers) {
      if (worker.prospect == Prospect::kStateLost) last = std::max(last, worker.missing_since.value_or(last));
    }
    draft.wrong(
        "SlurmStateLost",
        fmt::format("{}: slurmctld has lost its state, or its nodes were deleted by hand. The workers do not register again by "
                    "themselves, and processes of jobs may still run on them. Restore slurmctld's state volume. If the workers "
                    "are to be replaced, which ends such processes, annotate the NodeSet with {}={}",
                    view.in.doubt, api::kAnnotationConfirmStateLoss, core::format_rfc3339(last)));
  }
  if (!starting.empty())
    draft.waiting("Starting", fmt::format("{} of {} workers are not ready: {}", starting.size(), view.desired, some(starting)));
  if (!placeless.empty()) {
    draft.waiting(
        "Placing",
        fmt::format("{} of {} workers wait for their places in the topology, see condition {} of Controller "
                    "{}: {}",
                    placeless.size(), view.desired, api::kConditionPlaced, view.in.controller->meta.name, some(placeless)));
  }
  const auto not_accepting = [&](const std::vector<std::string>& list) {
    return fmt::format("{} of {} workers do not accept jobs: {}", list.size(), view.desired, some(list));
  };
  if (!unusable.empty()) draft.waiting(kNotUsable, not_accepting(unusable));
  if (!refused.empty()) {
    draft.wrong(kNotUsable, not_accepting(refused) +
                                ". A machine, or the limits of its pod, has less than Slurm's record of the node. Correct it "
                                "and resume the node. Or delete the pod, which makes a new record; where the reason is about "
                                "GRES, correct extraConf and run scontrol delete nodename=NODE first");
  }
  if (!aside.empty()) draft.up_to_users(kNotUsable, not_accepting(aside));
  if (!old_conf.empty()) {
    draft.up_to_users(
        "OldConfiguration",
        fmt::format(
            "Slurm still has an earlier extraConf or earlier limits of {}, because the node record could not be deleted "
            "before the pod was created: if somebody drained the node, or set it down or failing, resume it, then delete its "
            "pod",
            some(old_conf)));
  }
  return usable + static_cast<int>(aside.size()) >= view.desired && (usable > 0 || aside.empty());
}

std::string earlier_text(const View& view, const Rollout& rollout) {
  return fmt::format("{} of {} workers still use an earlier template", rollout.earlier, view.desired);
}

/// Describes how many workers are out of service. The number can be larger than maxUnavailable, because it includes workers
/// that are not being updated, such as the new workers of a scale-out.
std::string out_of_service_text(const Rollout& rollout) {
  const std::string missing = rollout.missing > 0 ? fmt::format(" ({} of them missing)", rollout.missing) : "";
  if (rollout.unavailable <= rollout.most)
    return fmt::format("; {} of at most {} are out of service{}", rollout.unavailable, rollout.most, missing);
  return fmt::format(
      "; {} are out of service{}, more than maxUnavailable ({}): no further worker that serves is updated meanwhile",
      rollout.unavailable, missing, rollout.most);
}

/// Reports an update that is under way or that users hold back.
void tell_update(const View& view, const Rollout& rollout, const std::vector<std::string>& updating, Draft& draft) {
  if (rollout.earlier == 0 || rollout.state == Rollout::State::kByHand) return;
  if (!rollout.refusal.empty()) {
    draft.wrong("PodsRefused",
                earlier_text(view, rollout) + ": the API server would not create workers of the newest one: " + rollout.refusal,
                "Create");
  }
  std::string text = earlier_text(view, rollout);
  if (rollout.state == Rollout::State::kPaused)
    return draft.up_to_users("UpdatePaused", text + ": spec.updateStrategy.paused is true");
  if (rollout.state == Rollout::State::kScheduled) return draft.up_to_users("UpdateScheduled", text + ": " + window_text(view));
  const std::string partition = fmt::format("spec.updateStrategy.rollingUpdate.partition {} excludes {}",
                                            view.in.nodeset.spec.update_strategy.rolling_update.partition, rollout.below);
  const bool nothing_comes = rollout.under_way == 0 && rollout.in_place == 0;
  if (rollout.earlier == rollout.below && nothing_comes) return draft.up_to_users("UpdatePartitioned", text + ": " + partition);
  const bool rolls = rollout.state == Rollout::State::kRolls;
  if (rollout.below > 0) text += "; " + partition;
  if (rollout.outside > 0) text += fmt::format("; {} are in no maintenance window now", rollout.outside);
  if (rolls && rollout.earlier == rollout.below + rollout.outside + rollout.kept.size() && nothing_comes)
    return draft.up_to_users("UpdateHeld", text + "; not updated: " + some(rollout.kept));
  if (rolls) text += out_of_service_text(rollout);
  if (!updating.empty()) text += "; waiting: " + some(updating);
  if (!rollout.unanswered.empty())
    text +=
        "; waiting for the API server to check whether it would create workers of the newest template: " + rollout.unanswered;
  if (rollout.withheld) text += "; deletions are stopped";
  if (!rollout.kept.empty()) text += "; left out: " + some(rollout.kept);
  draft.waiting("Updating", std::move(text));
}

/// Reports workers of earlier templates that the operator does not replace.
void judge_revisions(const View& view, const Rollout& rollout, Draft& draft) {
  if (rollout.earlier == 0 || rollout.state != Rollout::State::kByHand) return;
  std::string how = earlier_text(view, rollout) + ": a worker is replaced when you delete its pod, which ends its jobs";
  const api::UpdateStrategyType type = view.in.nodeset.spec.update_strategy.type;
  if (type == api::UpdateStrategyType::kRollingUpdate)
    how += "; spec.updateStrategy.type RollingUpdate replaces them when the template changes the next time";
  if (type == api::UpdateStrategyType::kScheduledUpdate)
    how += "; spec.updateStrategy.type ScheduledUpdate replaces them in a window after the template has changed the next time";
  draft.up_to_users("OnDelete", std::move(how));
}

/// Reports problems of the NodeSet's partition. Returns false if Slurm reports that it does not have the wanted partition.
bool judge_partition(const View& view, Draft& draft) {
  const api::NodeSetPartition& wanted = view.in.nodeset.spec.partition;
  if (view.goal != Goal::kServe || !wanted.enabled) return true;
  const std::string name = slurm_node_set_name(view.in.nodeset.spec, view.in.meta().name);
  const core::Result<slurm::conf::Entry> line = partition_line(name, wanted.config);
  std::string wrong = line ? "" : line.error().message;
  if (line && !view.in.partition_refusal.empty())
    wrong = "slurmctld refuses it: " + view.in.partition_refusal + partition_doubts(name, wanted.config);
  const bool right = wrong.empty();
  if (!right) draft.wrong("PartitionInvalid", "spec.partition.config: " + wrong);
  if (!view.slurm_shows() || view.in.snapshot->partitions.contains(name)) return true;
  if (right) {
    draft.waiting("PartitionNotLoaded",
                  fmt::format("slurmctld has not loaded partition {} yet: see the conditions of Controller {}", name,
                              view.in.nodeset.spec.controller_ref.name));
  }
  return false;
}

/// Returns the places for which workers are still to be created: the places of this pass, and the places that another worker
/// still occupies.
std::set<SlotKey> places_to_create(const View& view, const Workers& workers, const Vacancies& vacancies) {
  std::set<SlotKey> out = vacancies.places;
  if (view.goal != Goal::kServe) return out;
  if (view.by_host()) {
    out.merge(hosts_to_fill(view, workers));
    return out;
  }
  for (const Worker& worker : workers) {
    if (worker.updates()) out.insert(worker.key);
  }
  const auto stays = [](const Worker& worker) { return worker.life == Life::kLive && !worker.goes(); };
  auto missing = view.desired - static_cast<std::ptrdiff_t>(out.size()) - std::ranges::count_if(workers, stays) -
                 std::ranges::count_if(view.in.orphans, to_be_adopted);
  if (missing <= 0) return out;
  std::set<int> used;
  for (const SlotKey& place : out) used.insert(place.ordinal);
  for (const Worker& worker : workers) {
    if (stays(worker)) used.insert(worker.key.ordinal);
  }
  for (const auto* pods : {&view.in.orphans, &view.in.unmanaged}) {
    for (const kube::PodPtr& pod : *pods) {
      if (pods == &view.in.unmanaged || to_be_adopted(pod))
        used.insert(ordinal_of(pod->meta.name, view.in.meta().name + "-").value_or(-1));
    }
  }
  FreeOrdinals free(view, std::move(used));
  while (missing > 0) {
    const SlotKey place{free.next()};
    const NameOwner owner = view.owner_of_name(place);
    if (owner == NameOwner::kOtherNodeSet || owner == NameOwner::kOtherNode) continue;
    if (owner != NameOwner::kOtherWorker) out.insert(place);
    --missing;
  }
  return out;
}

/// `node` is the Slurm name of a worker to be created. Adds to the intent the changes of the Slurm record that has this name
/// already.
void intend_for_record(const View& view, const PassResult& result, const std::string& node, plan::Intent& intent) {
  const slurm::Node* record = view.known_record(node);
  if (record == nullptr) return;
  if (judge_old_record(view, node) == OldRecord::kDeletedFirst && result.finalizer != Finalizer::kChanged) {
    if (view.failure(kDeleteRecord.of(node)) == nullptr) intent.add(kDeleteRecord.of(node));
  } else if (result.draining.contains(node) ||
             (slurm::held_by(record->reason, slurm::Owner::kOperator) && !record->state.has("FAIL") &&
              (record->state.has("DRAIN") || record->state.base == "DOWN"))) {
    intent.add(kResume.of(node));
  }
}

void write_intent(const View& view, const PassResult& result, Draft& draft) {
  plan::Intent& intent = draft.intent();
  const kube::ObjectMeta& self = view.in.meta();
  for (const plan::StepId& id : draft.wishes()) {
    // Drains were added to the intent before, by node. Marks were added before too, by pod. Events, confirmations and notes
    // change nothing, so the intent does not contain them.
    const bool told = id.verb == kDrain.verb || id.is(kClear) || id.is(kEvent) || id.is(kConfirm) || id.is(kNoteDrain);
    if (!told) intent.add(id);
  }
  const std::set<SlotKey> created = places_to_create(view, result.fates.workers, result.vacancies);
  // With host networking, the name of a Slurm node is unknown until its pod is placed on a Kubernetes node.
  const bool named = !uses_host_network(view.in.nodeset.spec);
  NodeNames successors;
  for (const SlotKey& place : created) {
    const std::string pod = view.pod_name(place);
    intent.add(kCreatePod.of(self.ns + "/" + pod));
    for (const Json& claim : view.in.nodeset.spec.volume_claim_templates) {
      if (!view.in.claims.contains(claim_name(claim, pod))) intent.add(kCreateClaim.of(self.ns + "/" + claim_name(claim, pod)));
    }
    if (!named) continue;
    intend_for_record(view, result, view.node_name(place), intent);
    successors.insert(view.node_name(place));
  }
  if (named && (view.goal == Goal::kServe || view.goal == Goal::kDrainAll) && view.in.namesake.empty()) {
    for (const Worker& worker : result.fates.workers) {
      const bool goes = worker.goes() || worker.life != Life::kLive;
      const bool record_goes = worker.record != nullptr && !worker.updates() && !outlives_worker(view, *worker.record);
      if (goes && record_goes && !successors.contains(worker.node)) intent.add(kDeleteRecord.of(worker.node));
    }
  }
  const bool has_finalizer =
      kube::has_finalizer(self, api::kFinalizerNodeSet) || kube::has_finalizer(self, api::kFinalizerReservation);
  if (self.terminating() && has_finalizer) intent.add(kRemoveFinalizer);
  for (const plan::StepId& kind : {kCreatePod, kDeletePod}) {
    const auto it = intent.remaining.find(kind);
    if (it != intent.remaining.end()) intent.pods += static_cast<int>(it->second.size());
  }
}

void judge_scaling(const View& view, const PassResult& result, Draft& draft) {
  const std::size_t to_create = result.vacancies.places.size();
  const int to_delete = result.scale_in.to_delete;
  if (to_create > 0) draft.waiting("ScalingOut", fmt::format("creating {} of {} workers", to_create, view.desired));
  if (std::string held = held_text(result.scale_in); !held.empty()) draft.waiting("ScalingIn", std::move(held));
  if (to_delete > 0) draft.waiting("ScalingIn", fmt::format("deleting {} worker{}", to_delete, to_delete == 1 ? "" : "s"));
}

/// Replaces numbers after `prefix`, such as "cpu-", by "*", so that the texts of all workers are the same. For example: pods
/// "cpu-*" is forbidden.
std::string without_ordinals(std::string text, std::string_view prefix) {
  for (std::size_t at = 0; (at = text.find(prefix, at)) != std::string::npos;) {
    at += prefix.size();
    text.replace(at, std::min(text.find_first_not_of("0123456789", at), text.size()) - at, "*");
  }
  return text;
}

struct Alike {
  Problem first;
  std::size_t more = 0;
};

/// Merges problems that differ only in the worker that they name. Returns at most `limit` entries. If more entries would
/// result, the last entry also counts all further problems.
std::vector<Alike> merge_alike(const View& view, std::vector<Problem> found, std::size_t limit) {
  std::vector<Alike> out;
  std::map<std::string, std::size_t> places;
  const std::string pods = view.in.meta().name + "-", hosts = view.node_prefix();
  for (Problem& problem : found) {
    const std::size_t colon = problem.message.find(": ");
    std::string what = problem.reason + problem.message.substr(colon == std::string::npos ? 0 : colon);
    what = without_ordinals(without_ordinals(std::move(what), pods), hosts);
    const auto [place, fresh] = places.emplace(std::move(what), std::min(out.size(), limit - 1));
    if (fresh && out.size() < limit) {
      out.push_back({std::move(problem)});
    } else if (problem.message != out[place->second].first.message) {
      ++out[place->second].more;
    }
  }
  return out;
}

/// Reports the problem, and the number of further problems like it. The event omits that number, because it changes too often.
void add_alike(Alike alike, bool with_event, std::string_view action, Draft& draft) {
  Problem& problem = alike.first;
  if (with_event && problem.wrong()) draft.lasting_event("Warning", problem.reason, action, problem.message);
  if (alike.more > 0) problem.message += fmt::format(" (and {} more)", alike.more);
  draft.problem(std::move(problem));
}

/// Reports failures of steps that are still wanted. Refusals because Slurm or a node is busy are reported only if they last.
void judge_failures(const View& view, Draft& draft) {
  plan::Outcomes wished;
  for (const plan::StepId& id : draft.wishes()) {
    const plan::Outcome* failed = view.failure(id);
    if (failed == nullptr) continue;
    const bool busy = failed->error && failed->error->code == core::ErrorCode::kBusy;
    if (!busy || failed->count >= kBusyShown) wished.emplace(id, *failed);
  }
  for (Alike& alike : merge_alike(view, step_problems(wished), SIZE_MAX)) {
    // A failed creation of a pod has an event of its own: see tries().
    const bool told = alike.first.step.is(kCreatePod);
    add_alike(std::move(alike), !told, "Sync", draft);
  }
}

void judge_pods(const View& view, const Workers& workers, const ExtraConf& extra_conf, Draft& draft) {
  if (view.goal == Goal::kServe) {
    for (const Problem& problem : view.in.missing) draft.wrong(problem.reason, problem.message, "Run");
    if (view.in.newer) draft.waiting(view.in.newer->reason, view.in.newer->message);
  }
  std::vector<kube::PodPtr> live, current, all;
  for (const Worker& worker : workers) {
    if (worker.life != Life::kLive || worker.goes()) continue;
    all.push_back(worker.pod);
    if (worker.ready()) continue;
    live.push_back(worker.pod);
    if (worker.pod->meta.label(api::kLabelRevisionHash) == view.in.hash) current.push_back(worker.pod);
  }
  for (Alike& alike : merge_alike(view, pod_problems(live), kNames)) add_alike(std::move(alike), true, "Run", draft);
  for (Alike& alike : merge_alike(view, refused_files(all), kNames)) add_alike(std::move(alike), true, "Run", draft);
  // Report doubts about spec.extraConf only if a worker with this template has a problem. If slurmd runs, that proves more than
  // our check of spec.extraConf.
  if (!extra_conf.doubts.empty() && !pod_problems(current).empty()) draft.wrong("ExtraConfSuspect", extra_conf.doubts, "Run");
}

/// Reports deleted worker pods that still exist because of their finalizers. No other worker can take the places of these pods.
/// A pod on a lost host waits for its kubelet, so its finalizers are not reported.
void tell_held_pods(const View& view, const Workers& workers, Draft& draft) {
  std::vector<Problem> held;
  for (const Worker& worker : workers) {
    const kube::ObjectMeta& pod = worker.pod->meta;
    if (!pod.terminating() || pod.finalizers.empty() || worker.host_lost()) continue;
    const core::Duration left = *pod.deletion_timestamp + kHeld - view.in.now;
    if (left.count() > 0) {
      draft.wake_after(left, "a deleted worker with finalizers may be held by them");
      continue;
    }
    const bool many = pod.finalizers.size() > 1;
    const std::string names = fmt::format("{}", fmt::join(pod.finalizers, ", "));
    held.push_back(
        {"HeldByFinalizer", fmt::format("Pod {}: it was deleted and had to end by {}, but {} until whoever set {}",
                                        pod.key().str(), core::format_rfc3339(*pod.deletion_timestamp),
                                        many ? "the finalizers " + names + " keep it" : "the finalizer " + names + " keeps it",
                                        many ? "them has removed them" : "it has removed it")});
  }
  for (Alike& alike : merge_alike(view, std::move(held), kNames)) add_alike(std::move(alike), true, "Delete", draft);
}

/// True if the deletion of the NodeSet waits for Slurm records, which are not deleted because deletions are stopped.
bool keeps_nodeset(const View& view, const StaleRecords& stale) {
  return view.in.meta().terminating() && view.in.pods.empty() && !stale.withheld.empty();
}

/// True if the doubt about Slurm's answers concerns this NodeSet: the answers come from another cluster, the doubt comes from a
/// worker of this NodeSet, or the doubt delays a deletion of this NodeSet.
bool concerned(const View& view, const PassResult& result) {
  return (view.in.snapshot != nullptr && view.in.snapshot->other_cluster) || !result.scale_in.withheld.empty() ||
         keeps_nodeset(view, result.stale) || result.fates.rollout.withheld ||
         std::ranges::any_of(result.fates.workers, [](const Worker& worker) {
           return worker.life == Life::kLive && worker.stamped &&
                  (worker.record == nullptr || worker.has_flag("NOT_RESPONDING"));
         });
}

void judge_stop(const View& view, const PassResult& result, Draft& draft) {
  const std::vector<std::string>& workers = result.scale_in.withheld;
  if (!workers.empty()) {
    draft.waiting("DeletionsStopped", "deletions are stopped, so these workers are not deleted: " + some(workers));
  } else if (keeps_nodeset(view, result.stale)) {
    draft.waiting("DeletionsStopped", "deletions are stopped, so these Slurm nodes, which have no worker, are not deleted: " +
                                          some(result.stale.withheld));
  }
}

/// Sets the condition DeletionsStopped after a loss of Kubernetes nodes. The message of the condition records the loss. So the
/// condition is also set if an annotation, or a doubt about Slurm's answers, stops deletions already.
void set_node_loss(const View& view, Conditions& conditions) {
  const NodeLoss& loss = view.in.node_loss;
  if (!loss.any()) return;
  std::string text = loss.text();
  if (loss.confirmed) {
    text += ", and that is confirmed: workers whose Kubernetes nodes do not match are deleted once they run no jobs";
  } else {
    text += fmt::format(
        ": no worker is deleted because its Kubernetes node does not match. Deletions resume when the nodes match again. If "
        "the workers are to be deleted, annotate the NodeSet with {}={}",
        api::kAnnotationConfirmNodeLoss, loss.since);
  }
  const auto before = std::ranges::find(conditions.all(), api::kConditionDeletionsStopped, &api::Condition::type);
  const bool stopped = before != conditions.all().end();
  if (stopped) text += "; " + before->message;
  conditions.set(api::kConditionDeletionsStopped, !loss.confirmed || stopped,
                 loss.confirmed ? "NodeLossConfirmed" : "NodesLost", std::move(text));
}

/// Keeps conditions that this release does not know.
void keep_foreign(const View& view, Conditions& conditions, const std::vector<api::Condition>& before) {
  for (const api::Condition& condition : before) {
    const bool known = condition.type == api::kConditionReady || condition.type == api::kConditionProgressing ||
                       condition.type == api::kConditionDegraded || condition.type == api::kConditionFieldsNotActedOn ||
                       condition.type == api::kConditionDeletionsStopped ||
                       (condition.type == api::kConditionReservationCreated && view.goal != Goal::kHold);
    if (!known) conditions.set(condition.type, condition.status, condition.reason, condition.message);
  }
}

/// Returns the type, status and reason of each condition. A change of one of these fields is written at once.
std::string states_of(const Json* conditions) {
  std::string out;
  if (conditions == nullptr || !conditions->is_array()) return out;
  for (const Json& condition : *conditions) {
    for (const char* part : {"type", "status", "reason"}) out += core::get_string(condition, {part}) + " ";
  }
  return out;
}

/// True if the patch changes only counts and messages.
bool is_minor(const View& view, const Json& patch) {
  if (patch.contains("observedGeneration") || patch.contains("desired") || patch.contains("ordinalToNode") ||
      patch.contains("drainsToRestore"))
    return false;
  return !patch.contains("conditions") ||
         states_of(&patch["conditions"]) == states_of(core::find(view.in.object->body, {"status", "conditions"}));
}

/// Returns the last write of the status if that write is so recent that changes of only counts and messages must wait.
/// Otherwise returns null.
const std::pair<const plan::StepId, plan::Outcome>* find_recent_status(const View& view) {
  for (auto it = view.in.outcomes.lower_bound(kStatus); it != view.in.outcomes.end() && it->first.is(kStatus); ++it) {
    if (it->second.state == plan::Outcome::State::kDone && view.in.mono - it->second.last < kCountsEvery) return &*it;
  }
  return nullptr;
}

}  // namespace

void write_status(const View& view, const PassResult& result, Draft& draft) {
  const Workers& workers = result.fates.workers;
  write_intent(view, result, draft);
  judge_stop(view, result, draft);
  tell_update(view, result.fates.rollout, result.scale_in.updating, draft);
  tell_switch(view, result.fates, draft);
  tell_renames(view, workers, draft);
  judge_scaling(view, result, draft);
  bool ready = judge_workers(view, workers, draft);
  ready = judge_partition(view, draft) && ready;
  if (view.goal != Goal::kServe || !view.in.namesake.empty()) ready = false;
  judge_revisions(view, result.fates.rollout, draft);
  judge_pods(view, workers, result.extra_conf, draft);
  tell_held_pods(view, workers, draft);
  tell_claims(view, workers, draft);
  judge_failures(view, draft);
  if (const auto problem = slurm_problem(view.in.snapshot)) draft.wrong(problem->reason, problem->message, "Observe");

  const api::NodeSetStatus& before = view.in.nodeset.status;
  api::NodeSetStatus status = count(view, result, draft);
  Conditions conditions(before.conditions, view.in.meta().generation, view.in.now);
  set_summary(conditions, ready, draft.problems(), "", draft.up_to_users());
  set_fields_not_acted_on(conditions, api::fields_not_acted_on(view.in.nodeset.spec));
  if (const auto& note = result.maintenance.note) {
    conditions.set(api::kConditionReservationCreated, note->made, note->reason, note->message);
  }
  if (view.in.stopped || concerned(view, result)) set_deletions_stopped(conditions, view.in.stopped, view.in.doubt);
  set_node_loss(view, conditions);
  keep_foreign(view, conditions, before.conditions);
  Json wanted = api::to_json(status);
  wanted["conditions"] = conditions.json();
  // The status is written as a merge patch, so removed entries need an explicit null.
  const auto drop = [&](const char* field, const api::StringMap& had, const api::StringMap& has) {
    for (const auto& [name, value] : had) {
      if (!has.empty() && !has.contains(name)) wanted[field][name] = nullptr;
    }
  };
  drop("ordinalToNode", before.ordinal_to_node, status.ordinal_to_node);
  drop("drainsToRestore", before.drains_to_restore, status.drains_to_restore);

  // The patch of the finalizer, or the note of a drain, changes the resourceVersion that the status write needs. The API server
  // would refuse one of the two writes, so a later pass writes the status.
  if (result.finalizer == Finalizer::kChanged || result.noted) return;
  std::optional<plan::Step> step = status_step(resources::kNodeSet, *view.in.object, std::move(wanted));
  if (!step) return;
  const auto* act = dynamic_cast<const kube::Patch*>(step->act.get());
  if (act != nullptr && is_minor(view, act->patch.at("status"))) {
    if (const auto* recent = find_recent_status(view)) {
      draft.remember(recent->first);
      draft.wake_after(kCountsEvery - (view.in.mono - recent->second.last), "counts in status");
      return;
    }
  }
  // The variant makes each status a different step. So a status that changes with each pass does not count as a step that is
  // repeated without effect.
  step->id.variant = fmt::format("{}, {} of {} ready", step->reason, status.ready_replicas, status.replicas);
  if (!draft.wish_now(step->id)) return;
  draft.lane("status").add(std::move(*step));
  tell_restored(view, workers, status.drains_to_restore, draft);
  // Report the change only in the pass that writes the status, because the status then records the new number of workers.
  if (view.goal == Goal::kServe && view.desired != before.desired) {
    const bool more = view.desired > before.desired;
    draft.event("Normal", more ? "ScalingUp" : "ScalingDown", more ? "ScaleUp" : "ScaleDown",
                fmt::format("Scaling {} from {} to {} workers", more ? "out" : "in", before.desired, view.desired));
  }
}

}  // namespace op::nodeset
