// What users read: counts, conditions, and events for what lasts. Computed from what is, and written only when it differs.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "api/well_known.hpp"
#include "cluster/worker_names.hpp"
#include "kube/acts.hpp"
#include "operator/common/partition.hpp"
#include "operator/nodeset/pass.hpp"
#include "slurm/acts.hpp"

namespace op::nodeset {
namespace {

using core::Json;

/// Counts that run up while workers come and go are written this often, conditions at once.
constexpr core::Duration kCountsEvery{500};
/// After so many refusals, a node that Slurm will not let go is shown: a reservation may hold it.
constexpr int kBusyShown = 20;
constexpr std::string_view kNotUsable = "NotUsable";
/// How many names a message lists.
constexpr std::size_t kNames = 3;

bool available(Pass& pass, const Worker& worker) {
  if (!worker.pod->ready()) return false;
  const core::Duration needed{1000LL * pass.in.nodeset.spec.min_ready_seconds};
  if (needed.count() == 0) return true;
  const std::optional<core::WallTime> since = worker.pod->ready_since;
  if (!since) return false;
  const core::Duration left = needed - (pass.in.now - *since);
  if (left.count() <= 0) return true;
  pass.out.wake_after(left, "minReadySeconds");
  return false;
}

api::NodeSetStatus count(Pass& pass) {
  const api::NodeSetStatus& before = pass.in.nodeset.status;
  api::NodeSetStatus out;
  for (const Worker& worker : pass.workers) {
    if (worker.life == Life::kEnded) continue;
    ++out.replicas;
    if (worker.life == Life::kLive && worker.pod->meta.label(api::kLabelRevisionHash) == pass.in.hash) ++out.updated_replicas;
    if (worker.pod->phase == "Running" && worker.pod->ready()) {
      ++out.ready_replicas;
      if (available(pass, worker)) ++out.available_replicas;
    }
    if (worker.record == nullptr) continue;
    const slurm::NodeState& state = worker.record->state;
    if (state.base == "IDLE") ++out.slurm_idle;
    if (state.base == "ALLOCATED" || state.base == "MIXED") ++out.slurm_allocated;
    if (state.base == "DOWN") ++out.slurm_down;
    if (state.has("DRAIN")) ++out.slurm_drain;
  }
  if (!slurm::has_answered(pass.in.snapshot)) {
    // Nothing is known, which is not zero.
    out.slurm_idle = before.slurm_idle;
    out.slurm_allocated = before.slurm_allocated;
    out.slurm_down = before.slurm_down;
    out.slurm_drain = before.slurm_drain;
  }
  out.desired = pass.desired;
  out.unavailable_replicas = std::max(0, out.replicas - out.available_replicas);
  out.observed_generation = pass.in.meta().generation;
  out.nodeset_hash = pass.in.hash.empty() ? before.nodeset_hash : pass.in.hash;
  out.collision_count = before.collision_count;
  out.ordinal_to_node = before.ordinal_to_node;
  out.selector = fmt::format("{}={},{}={}", api::kLabelInstance, pass.in.meta().name, api::kLabelName, kAppWorker);
  return out;
}

/// "cpu-1 drained by somebody: bad disk", for what keeps a worker from taking jobs.
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

/// Somebody took it from work, and it is his to give it back.
bool set_aside(const Worker& worker) {
  if (worker.has_flag("INVALID_REG")) return false;
  return worker.user_cordon || worker.kube_cordon() || (worker.record != nullptr && keeps_others_word(worker));
}

bool expects(const Pass& pass, Prospect prospect) {
  return std::ranges::any_of(pass.workers, [&](const Worker& worker) { return worker.prospect == prospect; });
}

/// What keeps wanted workers from being usable; true when nothing does but people, and some are.
bool judge_workers(Pass& pass) {
  std::vector<std::string> starting, unusable, aside, broken, otherwise;
  int usable = 0;
  for (const Worker& worker : pass.workers) {
    if (worker.life != Life::kLive || worker.goes()) continue;
    if (worker.record != nullptr && has_other_conf(pass, *worker.record, worker.pod->meta.label(api::kLabelRevisionHash)))
      otherwise.push_back(worker.node);
    if (!worker.ready()) {
      starting.push_back(worker.pod->meta.name);
    } else if (worker.usable()) {
      ++usable;
    } else {
      auto& list = set_aside(worker) ? aside : worker.has_flag("INVALID_REG") ? broken : unusable;
      list.push_back(why_unusable(worker));
    }
  }
  if (!pass.slurm_shows() && !pass.workers.empty()) {
    const bool silent = pass.in.snapshot == nullptr || pass.in.snapshot->error.empty();
    pass.waiting("WaitingForSlurm", silent ? "waiting for Slurm" : "waiting for Slurm: " + pass.in.snapshot->error);
    return false;
  }
  if (expects(pass, Prospect::kNoRoom) && pass.goal == Goal::kServe) {
    pass.wrong("TooManyNodes",
               fmt::format(
                   "Slurm already has as many nodes as MaxNodeCount allows ({}), so more workers cannot register: scale in, or "
                   "raise MaxNodeCount in spec.extraConf of Controller {}",
                   *pass.in.controller->max_nodes, pass.in.controller->meta.name));
  }
  if (expects(pass, Prospect::kStateLost) && pass.goal != Goal::kEndAll) {
    pass.wrong("SlurmStateLost",
               pass.in.doubt +
                   ": slurmctld has lost its state, or its nodes were deleted by hand. The workers do not register again by "
                   "themselves, and processes of jobs may still run on them. Restore slurmctld's state volume, or delete the "
                   "worker pods");
  }
  if (!starting.empty())
    pass.waiting("Starting", fmt::format("{} of {} workers are not ready: {}", starting.size(), pass.desired, some(starting)));
  const auto take_none = [&](const std::vector<std::string>& list) {
    return fmt::format("{} of {} workers do not accept jobs: {}", list.size(), pass.desired, some(list));
  };
  if (!unusable.empty()) pass.waiting(kNotUsable, take_none(unusable));
  if (!broken.empty()) pass.wrong(kNotUsable, take_none(broken));
  if (!aside.empty()) pass.up_to_users.push_back({std::string(kNotUsable), take_none(aside)});
  if (!otherwise.empty()) {
    pass.up_to_users.push_back(
        {"OldConfiguration",
         fmt::format(
             "Slurm still has an earlier extraConf or earlier limits of {}, because the node record could not be deleted "
             "before the pod was created: if somebody drained the node, resume it, then delete its pod",
             some(otherwise))});
  }
  return usable + static_cast<int>(aside.size()) >= pass.desired && (usable > 0 || aside.empty());
}

/// Workers of an earlier template, which nobody replaces but who deletes their pods.
void judge_revisions(Pass& pass) {
  if (pass.goal != Goal::kServe || pass.in.hash.empty()) return;
  const auto outdated = std::ranges::count_if(pass.workers, [&](const Worker& worker) {
    const std::string_view revision = worker.pod->meta.label(api::kLabelRevisionHash);
    return worker.life == Life::kLive && !worker.goes() && !revision.empty() && revision != pass.in.hash;
  });
  if (outdated == 0) return;
  std::string text = fmt::format(
      "{} of {} workers still use an earlier template: a worker is replaced when you delete its pod, which ends its jobs",
      outdated, pass.desired);
  const api::UpdateStrategyType type = pass.in.nodeset.spec.update_strategy.type;
  if (type != api::UpdateStrategyType::kOnDelete)
    text +=
        fmt::format("; spec.updateStrategy.type {} is not supported in this release, so they are not replaced automatically",
                    api::to_string(type));
  pass.up_to_users.push_back({"OnDelete", std::move(text)});
}

/// Of updateStrategy only OnDelete is done. RollingUpdate is everybody's default, who set nothing: where it would do something,
/// the reason OnDelete tells that it does not.
std::vector<std::string> fields_not_acted_on(const Pass& pass) {
  std::vector<std::string> out = api::fields_not_acted_on(pass.in.nodeset.spec);
  if (pass.in.nodeset.spec.update_strategy.type == api::UpdateStrategyType::kScheduledUpdate)
    out.emplace_back("spec.updateStrategy.type");
  return out;
}

/// True when there is the NodeSet's partition, or none is wanted.
bool judge_partition(Pass& pass) {
  const api::NodeSetPartition& wanted = pass.in.nodeset.spec.partition;
  if (pass.goal != Goal::kServe || !wanted.enabled) return true;
  const std::string name = slurm_node_set_name(pass.in.nodeset.spec, pass.in.meta().name);
  const core::Result<slurm::conf::Entry> line = partition_line(name, wanted.config);
  std::string wrong = line ? "" : line.error().message;
  if (line && !pass.in.partition_refusal.empty())
    wrong = "slurmctld refuses it: " + pass.in.partition_refusal + partition_doubts(name, wanted.config);
  const bool right = wrong.empty();
  if (!right) pass.wrong("PartitionInvalid", "spec.partition.config: " + wrong);
  if (!pass.slurm_shows() || pass.in.snapshot->partitions.contains(name)) return true;
  if (right) {
    pass.waiting("PartitionNotLoaded",
                 fmt::format("slurmctld has not loaded partition {} yet: see the conditions of Controller {}", name,
                             pass.in.nodeset.spec.controller_ref.name));
  }
  return false;
}

/// Whose creation is still to come: those of this pass, and those whose place is held by what goes.
std::set<int> ordinals_to_create(const Pass& pass) {
  std::set<int> out = pass.vacant;
  if (pass.goal != Goal::kServe) return out;
  const auto stays = [](const Worker& worker) { return worker.life == Life::kLive && !worker.goes(); };
  auto missing = pass.desired - static_cast<std::ptrdiff_t>(out.size()) - std::ranges::count_if(pass.workers, stays) -
                 std::ranges::count_if(pass.in.orphans, to_be_adopted);
  if (missing <= 0) return out;
  std::set<int> used = out;
  for (const Worker& worker : pass.workers) {
    if (stays(worker)) used.insert(worker.key.ordinal);
  }
  for (const auto* pods : {&pass.in.orphans, &pass.in.strangers}) {
    for (const kube::PodPtr& pod : *pods) {
      if (pods == &pass.in.strangers || to_be_adopted(pod))
        used.insert(ordinal_of(pod->meta.name, pass.in.meta().name + "-").value_or(-1));
    }
  }
  for (int ordinal = 0; missing > 0; ++ordinal) {
    const Pass::Name name = used.insert(ordinal).second ? pass.name_of(ordinal) : Pass::Name::kNodeSets;
    if (name == Pass::Name::kNodeSets) continue;
    if (name != Pass::Name::kRivals) out.insert(ordinal);
    --missing;
  }
  return out;
}

/// What becomes of the record under the name of a worker that is to be created.
void intend_for_record(Pass& pass, const std::string& node) {
  const slurm::Node* record = pass.slurm_known() ? pass.in.snapshot->node(node) : nullptr;
  if (record == nullptr) return;
  plan::Intent& intent = pass.out.intent;
  if (judge_old_record(pass, node) == OldRecord::kGoesFirst && !pass.patches_nodeset) {
    if (pass.failure(kDeleteRecord.of(node)) == nullptr) intent.add(kDeleteRecord.of(node));
  } else if (pass.draining.contains(node) ||
             (slurm::held_by(record->reason, slurm::Owner::kOperator) && !record->state.has("FAIL") &&
              (record->state.has("DRAIN") || record->state.base == "DOWN"))) {
    intent.add(kResume.of(node));
  }
}

void judge_intent(Pass& pass) {
  plan::Intent& intent = pass.out.intent;
  const kube::ObjectMeta& self = pass.in.meta();
  const api::NodeSetSpec& spec = pass.in.nodeset.spec;
  for (const plan::StepId& id : pass.wishes()) {
    // The first two were told by node and pod; the others change nothing.
    const bool told = id.verb == kDrain.verb || id.is(kClear) || id.is(kEvent) || id.is(kConfirm);
    if (!told) intent.add(id);
  }
  const std::set<int> created = ordinals_to_create(pass);
  const std::string prefix = host_prefix(core::get_string(spec.pod_template.spec, {"hostname"}), self.name);
  // With host networking, nodes are named when their pods are placed.
  const bool named = !uses_host_network(spec);
  for (const int ordinal : created) {
    intent.add(kCreatePod.of(self.ns + "/" + pod_name(self.name, ordinal, spec.ordinal_padding)));
    if (named) intend_for_record(pass, prefix + padded_ordinal(ordinal, spec.ordinal_padding));
  }
  if (named && (pass.goal == Goal::kServe || pass.goal == Goal::kDrainAll) && pass.in.namesake.empty()) {
    for (const Worker& worker : pass.workers) {
      const bool goes = worker.goes() || worker.life != Life::kLive;
      const bool record_goes = worker.record != nullptr && !outlives_worker(pass, *worker.record);
      if (goes && record_goes && !created.contains(worker.key.ordinal)) intent.add(kDeleteRecord.of(worker.node));
    }
  }
  if (self.terminating() && kube::has_finalizer(self, api::kFinalizerNodeSet)) intent.add(kRemoveFinalizer);
  for (const plan::StepId& kind : {kCreatePod, kDeletePod}) {
    const auto it = intent.remaining.find(kind);
    if (it != intent.remaining.end()) intent.pods += static_cast<int>(it->second.size());
  }
}

void judge_scaling(Pass& pass) {
  if (pass.to_create > 0) pass.waiting("ScalingOut", fmt::format("creating {} of {} workers", pass.to_create, pass.desired));
  if (pass.to_delete > 0)
    pass.waiting("ScalingIn", fmt::format("deleting {} worker{}", pass.to_delete, pass.to_delete == 1 ? "" : "s"));
}

/// "pods "cpu-*" is forbidden", for the prefix "cpu-": the same for every worker.
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

/// One trouble of a hundred workers is one problem, wherever it comes up, and though it names each. The last one of `limit`
/// stands for all that follow.
std::vector<Alike> merge_alike(const Pass& pass, std::vector<Problem> found, std::size_t limit) {
  std::vector<Alike> out;
  std::map<std::string, std::size_t> places;
  const std::string pods = pass.in.meta().name + "-", hosts = host_prefix(*pass.in.object);
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

/// The event is of the first one: how many there are changes too often.
void add_alike(Pass& pass, Alike alike, bool with_event, std::string_view action) {
  Problem& problem = alike.first;
  if (with_event && problem.degraded) pass.lasting_event("Warning", problem.reason, action, problem.message);
  if (alike.more > 0) problem.message += fmt::format(" (and {} more)", alike.more);
  pass.problems.push_back(std::move(problem));
}

/// Failures of steps that are still wished for. What Slurm holds back is no failure until it lasts.
void judge_failures(Pass& pass) {
  plan::Outcomes wished;
  for (const plan::StepId& id : pass.wishes()) {
    const plan::Outcome* failed = pass.failure(id);
    if (failed == nullptr) continue;
    const bool busy = failed->error && failed->error->code == core::ErrorCode::kBusy;
    if (!busy || failed->count >= kBusyShown) wished.emplace(id, *failed);
  }
  for (Alike& alike : merge_alike(pass, step_problems(wished), SIZE_MAX)) {
    // Of workers that are refused another event tells.
    const bool told = alike.first.step.is(kCreatePod);
    add_alike(pass, std::move(alike), !told, "Sync");
  }
}

void judge_pods(Pass& pass) {
  if (pass.goal == Goal::kServe) {
    for (const Problem& problem : pass.in.missing) pass.wrong(problem.reason, problem.message, "Run");
  }
  std::vector<kube::PodPtr> live, current;
  for (const Worker& worker : pass.workers) {
    if (worker.life != Life::kLive || worker.goes() || worker.ready()) continue;
    live.push_back(worker.pod);
    if (worker.pod->meta.label(api::kLabelRevisionHash) == pass.in.hash) current.push_back(worker.pod);
  }
  for (Alike& alike : merge_alike(pass, pod_problems(live), kNames)) add_alike(pass, std::move(alike), true, "Run");
  // Only beside a worker that does not run: a slurmd that does knows more than we.
  if (!pass.conf_doubts.empty() && !pod_problems(current).empty()) pass.wrong("ExtraConfSuspect", pass.conf_doubts, "Run");
}

/// Some worker of this NodeSet is a reason for the doubt, or would go but for it.
bool concerned(const Pass& pass) {
  return !pass.withheld.empty() || std::ranges::any_of(pass.workers, [](const Worker& worker) {
    return worker.life == Life::kLive && worker.stamped && (worker.record == nullptr || worker.has_flag("NOT_RESPONDING"));
  });
}

void judge_stop(Pass& pass) {
  if (pass.withheld.empty()) return;
  pass.waiting("DeletionsStopped", "deletions are stopped, so these workers are not deleted: " + some(pass.withheld));
}

void set_stop(const Pass& pass, Conditions& conditions) {
  if (!pass.in.stopped && !concerned(pass)) return;
  set_deletions_stopped(conditions, pass.in.stopped, pass.in.doubt);
}

/// Conditions are kept that this release does not know.
void keep_foreign(Conditions& conditions, const std::vector<api::Condition>& before) {
  for (const api::Condition& condition : before) {
    const bool known = condition.type == api::kConditionReady || condition.type == api::kConditionProgressing ||
                       condition.type == api::kConditionDegraded || condition.type == api::kConditionFieldsNotActedOn ||
                       condition.type == api::kConditionDeletionsStopped;
    if (!known) conditions.set(condition.type, condition.status, condition.reason, condition.message);
  }
}

/// Type, status and reason of each condition: what is written at once when it changes.
std::string gist(const Json* conditions) {
  std::string out;
  if (conditions == nullptr || !conditions->is_array()) return out;
  for (const Json& condition : *conditions) {
    for (const char* part : {"type", "status", "reason"}) out += core::get_string(condition, {part}) + " ";
  }
  return out;
}

/// Only counts and messages differ, and they were written a moment ago.
bool can_wait(Pass& pass, const Json& patch) {
  if (patch.contains("observedGeneration") || patch.contains("desired")) return false;
  if (patch.contains("conditions") &&
      gist(&patch["conditions"]) != gist(core::find(pass.in.object->body, {"status", "conditions"}))) {
    return false;
  }
  for (auto it = pass.in.outcomes.lower_bound(kStatus); it != pass.in.outcomes.end() && it->first.is(kStatus); ++it) {
    const core::Duration since = pass.in.mono - it->second.last;
    if (it->second.state != plan::Outcome::State::kDone || since >= kCountsEvery) continue;
    pass.out.remember(it->first);
    pass.out.wake_after(kCountsEvery - since, "counts in status");
    return true;
  }
  return false;
}

}  // namespace

void write_status(Pass& pass) {
  judge_intent(pass);
  judge_stop(pass);
  judge_scaling(pass);
  bool ready = judge_workers(pass);
  ready = judge_partition(pass) && ready;
  if (pass.goal != Goal::kServe || !pass.in.namesake.empty()) ready = false;
  judge_revisions(pass);
  judge_pods(pass);
  judge_failures(pass);
  if (const auto problem = slurm_problem(pass.in.snapshot)) pass.wrong(problem->reason, problem->message, "Observe");

  const api::NodeSetStatus& before = pass.in.nodeset.status;
  api::NodeSetStatus status = count(pass);
  Conditions conditions(before.conditions, pass.in.meta().generation, pass.in.now);
  set_summary(conditions, ready, pass.problems, "", pass.up_to_users);
  set_fields_not_acted_on(conditions, fields_not_acted_on(pass));
  set_stop(pass, conditions);
  keep_foreign(conditions, before.conditions);
  Json wanted = api::to_json(status);
  wanted["conditions"] = conditions.json();

  // The finalizer's patch is of the same version: one of the two would be refused.
  if (pass.patches_nodeset) return;
  std::optional<plan::Step> step = status_step(resources::kNodeSet, *pass.in.object, std::move(wanted));
  if (!step) return;
  const auto* act = dynamic_cast<const kube::Patch*>(step->act.get());
  if (act != nullptr && can_wait(pass, act->patch.at("status"))) return;
  // Another status is another wish: one that changes with every pass is no step that is done in vain.
  step->id.variant = fmt::format("{}, {} of {} ready", step->reason, status.ready_replicas, status.replicas);
  pass.wish(step->id);
  if (!pass.due(step->id)) return;
  pass.out.lane("status").add(std::move(*step));
  // Said once: the status that goes out with it is what it is told by.
  if (pass.goal == Goal::kServe && pass.desired != before.desired) {
    const bool more = pass.desired > before.desired;
    pass.event("Normal", more ? "ScalingUp" : "ScalingDown", more ? "ScaleUp" : "ScaleDown",
               fmt::format("Scaling {} from {} to {} workers", more ? "out" : "in", before.desired, pass.desired));
  }
}

}  // namespace op::nodeset
