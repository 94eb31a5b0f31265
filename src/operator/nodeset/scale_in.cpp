// Which workers go, and how: ranked, drained, their record deleted (the fence), then their pod.
#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "api/well_known.hpp"
#include "cluster/worker_names.hpp"
#include "kube/acts.hpp"
#include "operator/nodeset/pass.hpp"
#include "slurm/acts.hpp"

namespace op::nodeset {
namespace {

constexpr core::Duration kWatchSlurm{300};
/// The same where jobs, or a reservation, hold a worker for as long as they last. Their end wakes the key by itself.
constexpr core::Duration kWatchJobs{60000};
/// A Slurm whose word is sound again says nothing new of most nodes, and wakes nobody.
constexpr core::Duration kDoubtAgain{1000};
/// Look, mark, record, pod, event.
constexpr std::size_t kFencedSteps = 5;
/// A worker that did not register in all its time is taken not to have done so within this of a look, and got a job.
constexpr core::Duration kStillLost{5000};
/// A pod is deleted this late after Slurm was asked a last time about its node: where Slurm takes seconds for that, too.
constexpr core::Duration kConfirmed{30000};
/// After so long without an answer of Slurm, somebody is to look at it.
constexpr core::Duration kSilence{5 * 60 * 1000};
constexpr std::string_view kWaitingForSlurm = "WaitingForSlurm";
/// A worker that ended later than this after it was replaced is replaced at once again.
constexpr core::Duration kRemember{10 * 60 * 1000};

plan::StepId delete_id(const Worker& worker) {
  return kDeletePod.of(pod_text(worker));
}

plan::StepId record_id(const Worker& worker) {
  return kDeleteRecord.of(worker.node);
}

plan::StepId mark_id(const Worker& worker) {
  return kClear.of(pod_text(worker));
}

plan::Lane& lane_of(Pass& pass, const Worker& worker) {
  return pass.out.lane("delete " + worker.pod->meta.name);
}

plan::ActPtr clear_for_deletion(const kube::PodRecord& pod, const kube::PodEvidence& evidence) {
  auto act = std::make_shared<kube::Patch>();
  act->resource = kube::resources::kPod;
  act->key = pod.meta.key();
  act->uid = pod.meta.uid;
  act->patch = {
      {"metadata",
       {{"annotations",
         {{std::string(api::kAnnotationDeletionEvidence), fmt::format("{}: {}", evidence.kind(), evidence.detail())}}}}}};
  return act;
}

/// The pod's deletion, and the event that tells of it.
void delete_pod(Pass& pass, const Worker& worker, const std::string& why, plan::ActPtr deletion, core::Duration late = {}) {
  plan::Lane& lane = lane_of(pass, worker);
  if (!pass.step(lane, {delete_id(worker), why, std::move(deletion), late}) || !pass.room(1)) return;
  lane.then();
  pass.step(lane, pass.event_step("Normal", "SuccessfulDelete", "Delete",
                                  fmt::format("Deleted Pod {}: {}", worker.pod->meta.name, why)));
}

/// Slurm is asked last about the worker's node. False: not now.
bool confirm_idle(Pass& pass, const Worker& worker, const slurm::Drained& drained, std::string why) {
  if (!pass.step(lane_of(pass, worker), kConfirm.of(worker.node), std::move(why), slurm::confirm_idle(drained))) return false;
  lane_of(pass, worker).then();
  return true;
}

/// The last steps of a worker whose node is known to run nothing: mark the pod, delete the record, delete the pod. A group
/// each: the mark says why the record is gone, should we not live to see the third; the record's deletion, the fence, is
/// refused while a job holds it. Where Slurm takes seconds to answer, the pod is deleted late; not one that may be registering
/// meanwhile. One whose slurmd never ran may go late only as it was seen, with the mark on it.
template <class Kind>
void delete_with_record(Pass& pass, const Worker& worker, const WorkerEvidence<Kind>& evidence) {
  constexpr bool kUnregistered = std::is_same_v<Kind, slurm::NeverRegistered>;
  const std::string& why = worker.fate.reason;
  for (const plan::StepId& id : {mark_id(worker), record_id(worker), delete_id(worker)}) {
    pass.wish(id);
    if (!pass.due(id)) return;
  }
  if (!pass.room(kFencedSteps)) return;
  plan::Lane& lane = lane_of(pass, worker);
  core::Duration mark_late{0};
  if constexpr (std::is_same_v<Kind, slurm::Drained>) {
    if (!worker.cleared && pass.in.meta().terminating()) {
      // From the mark on Kubernetes' own cleaning may delete the pod, which asks nobody: so Slurm is asked before.
      if (!confirm_idle(pass, worker, evidence.node(), "the mark lets Kubernetes' own cleaning delete the pod")) return;
      mark_late = kConfirmed;
    }
  }
  if (!worker.cleared) pass.step(lane, {mark_id(worker), why, clear_for_deletion(*worker.pod, evidence), mark_late});
  // Its kubelet may start it after all: with the mark on it, it goes as it was seen.
  if (kUnregistered && !worker.cleared && !slurmd_started(*worker.pod)) return;
  lane.then();
  pass.step(lane, record_id(worker), why, slurm::delete_node(evidence.node(), why));
  lane.then();
  if (!slurmd_started(*worker.pod)) {
    if (!worker.cleared) return delete_pod(pass, worker, worker.fate.reason, kube::delete_fenced_pod(*worker.pod, evidence));
    return delete_pod(pass, worker, worker.fate.reason,
                      kube::delete_fenced_pod(*worker.pod, evidence, kube::PodVersion::kAsSeen), core::Duration::max());
  }
  const bool let_go = worker.let_go || !kUnregistered;
  const core::Duration late = let_go ? core::Duration::max() : worker.lost() ? kStillLost : core::Duration{0};
  delete_pod(pass, worker, worker.fate.reason, kube::delete_fenced_pod(*worker.pod, evidence), late);
}

/// Its slurmd may register at any moment, and what Slurm has under its name is an earlier worker's. That record keeps it from
/// work: without it Slurm would take it for a new node, and give it jobs.
bool may_register(const Worker& worker) {
  return worker.record != nullptr && (!slurmd_started(*worker.pod) || began_before(*worker.record, *worker.pod));
}

/// The same without the deletion of the record: the fence is a live look, directly before the deletion of the pod. A slurmd
/// that does not serve needs none; it is deleted only as it was seen.
void delete_leaving_record(Pass& pass, const Worker& worker, const WorkerEvidence<slurm::Drained>& evidence) {
  if (worker.outdated())
    return delete_pod(pass, worker, worker.fate.reason, kube::delete_pod(*worker.pod, evidence, kube::PodVersion::kAsSeen),
                      kConfirmed);
  const char* why = may_register(worker) ? "its record keeps it from work, should its slurmd register now"
                                         : "its record stays, with the word of who took it from work";
  if (!confirm_idle(pass, worker, evidence.node(), why)) return;
  delete_pod(pass, worker, worker.fate.reason, kube::delete_fenced_pod(*worker.pod, evidence), kConfirmed);
}

constexpr std::string_view kReserved =
    " is in a reservation in Slurm, and stays until the reservation ends or no longer names it";

std::string what_holds(const Worker& worker) {
  if (worker.work.jobs > 0)
    return fmt::format("{} runs {} job{}", worker.node, worker.work.jobs, worker.work.jobs == 1 ? "" : "s");
  if (worker.busy()) return worker.node + " is completing a job";
  if (reserved(*worker.record)) return worker.node + std::string(kReserved);
  return worker.node + " is being drained";
}

/// With the record an administrator's drain would go, which is meant for the next pod of the name as well; and so would jobs
/// that wait for the node of a worker that only is replaced. What an earlier worker left is good for the next one, too.
bool leaves_record(const Pass& pass, const Worker& worker) {
  if (worker.record == nullptr) return false;
  if (worker.outdated()) return keeps_others_word(worker) || may_register(worker) || pass.in.snapshot->job_names(worker.node);
  return outlives_worker(pass, *worker.record);
}

/// Told once, when the record goes; who cancels the jobs, or scales out again, before slurmctld reconfigures, loses none.
void tell_waiting_jobs(Pass& pass, const Worker& worker) {
  const Pass::Waiting& jobs = pass.jobs_waiting_for(worker.node);
  if (jobs.count == 0) return;
  std::string names = fmt::format("{}", fmt::join(jobs.first, ", "));
  if (jobs.first.size() < jobs.count) names += fmt::format(" and {} more", jobs.count - jobs.first.size());
  pass.lasting_event(
      "Warning", "JobsLoseTheirNode", "Delete",
      fmt::format("Node {} is being deleted in Slurm, which ends the pending jobs that require it: {}", worker.node, names));
}

/// A victim that once ran, or may run, jobs.
void delete_drained(Pass& pass, const Worker& worker) {
  if (!leaves_record(pass, worker)) {
    if (!worker.cleared && !may_register(worker)) pass.out.intent.add(mark_id(worker));
    pass.out.intent.add(record_id(worker));
  }
  if (!pass.room(kFencedSteps)) {
    for (const plan::StepId& id : {mark_id(worker), record_id(worker), delete_id(worker)}) pass.wish(id);
    return;
  }
  const bool held = worker.record != nullptr && worker.has_flag("DRAIN") && (worker.work.jobs > 0 || reserved(*worker.record));
  pass.out.wake_after(held && pass.slurm_fresh() ? kWatchJobs : kWatchSlurm, "waiting for Slurm to let workers go");
  if (!pass.slurm_fresh()) {
    const bool none = pass.in.snapshot == nullptr || pass.in.snapshot->error.empty();
    pass.waiting(kWaitingForSlurm, none ? "waiting for Slurm" : "waiting for Slurm: " + pass.in.snapshot->error);
    return;
  }
  if (worker.record == nullptr) {
    const bool stamped = worker.stamped && !worker.cleared && !worker.outdated();
    if (worker.evidence.forgotten) {
      delete_with_record(pass, worker, *worker.evidence.forgotten);
    } else if (worker.evidence.never_registered) {
      delete_with_record(pass, worker, *worker.evidence.never_registered);
    } else if (!stamped) {
      pass.waiting("ScalingIn",
                   fmt::format("Pod {} may still be starting: it is drained when it registers with Slurm, or deleted if "
                               "it does not register within three minutes",
                               pod_text(worker)));
    } else if (missed(pass, worker) && worker.registration_left.count() > 0) {
      pass.waiting("ScalingIn", fmt::format("Pod {} will be deleted when Slurm has had no node {} for three minutes",
                                            pod_text(worker), worker.node));
    } else {
      pass.wrong("SlurmNodeNotRegistered",
                 fmt::format("Pod {}: Slurm no longer has its node {}, so the operator cannot tell whether it runs jobs: "
                             "delete the pod by hand if it runs none",
                             pod_text(worker), worker.node),
                 "Delete");
    }
    return;
  }
  if (worker.silent()) {
    if (worker.evidence.silent) delete_with_record(pass, worker, *worker.evidence.silent);
    return;
  }
  if (worker.evidence.drained && !worker.busy() && !reserved(*worker.record)) {
    const bool leaves = leaves_record(pass, worker);
    if (!leaves) tell_waiting_jobs(pass, worker);
    // What an earlier worker left is deleted once the pod is gone.
    if (leaves || may_register(worker)) return delete_leaving_record(pass, worker, *worker.evidence.drained);
    return delete_with_record(pass, worker, *worker.evidence.drained);
  }
  pass.waiting("ScalingIn", what_holds(worker));
}

void delete_worker(Pass& pass, const Worker& worker) {
  const kube::PodRecord& pod = *worker.pod;
  if (pass.in.stopped) return pass.withheld.push_back(pod.meta.name);
  if (worker.fate.kind == Fate::Kind::kEnd) {
    if (worker.evidence.owner_ends)
      delete_pod(pass, worker, worker.fate.reason, kube::delete_pod(pod, *worker.evidence.owner_ends));
    return;
  }
  if (worker.evidence.never_started)
    return delete_pod(pass, worker, worker.fate.reason, kube::delete_pod(pod, *worker.evidence.never_started));
  if (!pass.in.doubt.empty()) {
    pass.out.wake_after(kDoubtAgain, pass.in.doubt);
    return pass.withheld.push_back(pod.meta.name);
  }
  delete_drained(pass, worker);
}

/// How often a worker was replaced lately is known from the deletions: they are kept in mind while its successors live.
void remember_replacements(Pass& pass) {
  for (auto it = pass.in.outcomes.lower_bound(kDeletePod); it != pass.in.outcomes.end() && it->first.is(kDeletePod); ++it) {
    if (pass.in.mono - it->second.last < kRemember) pass.out.remember(it->first);
  }
}

/// Ended pods make room for their successors. One that ended soon after it was made, again and again, is not replaced as fast.
void delete_ended(Pass& pass, const Worker& worker, bool replaced) {
  if (!worker.evidence.ended) return;
  const plan::StepId id = delete_id(worker);
  pass.wish(id);
  const auto before = pass.in.outcomes.find(id);
  if (replaced && before != pass.in.outcomes.end() && before->second.state == plan::Outcome::State::kDone) {
    const core::Duration waited = pass.in.mono - before->second.last;
    const core::Duration wait = backoff(before->second);
    if (waited < wait) {
      pass.out.wake_after(wait - waited, "a worker ended again soon after it was replaced");
      pass.waiting("Replacing", fmt::format("Pod {} has ended {} times, and will be replaced in {} s", pod_text(worker),
                                            before->second.count + 1, (wait - waited).count() / 1000 + 1));
      return;
    }
  }
  const std::string why =
      fmt::format("its phase is {}{}", worker.pod->phase, worker.pod->reason.empty() ? "" : " (" + worker.pod->reason + ")");
  delete_pod(pass, worker, why, kube::delete_pod(*worker.pod, *worker.evidence.ended));
}

/// For as long as Slurm does not answer, no worker that has run is let go of. It may never have come up.
void tell_silence(Pass& pass) {
  const std::optional<ControllerView>& controller = pass.in.controller;
  if (pass.goal != Goal::kDrainAll || !controller || pass.stops() || pass.slurm_known()) return;
  if (std::ranges::none_of(pass.problems, [](const Problem& problem) { return problem.reason == kWaitingForSlurm; })) return;
  if (pass.wait_at_most(kSilence, kWaitingForSlurm, "waiting for Slurm to answer, to learn which workers run no jobs")) return;
  std::vector<std::string> ways;
  if (controller->drain_on_deletion) ways.emplace_back("set spec.deletionPolicy of the Controller to Immediate");
  if (!controller->meta.terminating()) ways.emplace_back("delete the Controller");
  const std::string text = fmt::format(
      "Slurm has not answered for 5 minutes. The workers are not deleted, because they may run jobs. For the cause, see the "
      "conditions of Controller {}. To end the cluster anyway, {}: this ends the workers and their jobs at once",
      controller->meta.key().str(), fmt::join(ways, " and "));
  pass.lasting_event("Warning", kWaitingForSlurm, "Delete", text);
  pass.problems.push_back({std::string(kWaitingForSlurm), text});
}

enum class Ours { kNo, kPerhaps, kYes };

/// Whether a record is of this NodeSet, by its comment or by its features.
Ours is_ours(const Pass& pass, const slurm::Node& node) {
  if (const auto comment = worker_comment(node.comment)) {
    const std::string uid = core::get_string(*comment, {"nodeSetUID"});
    if (uid == pass.in.meta().uid) return Ours::kYes;
    // One of our name and another uid is gone: two cannot be at the same time.
    const bool predecessor = core::get_string(*comment, {"nodeSetName"}) == pass.in.meta().name &&
                             core::get_string(*comment, {"namespace"}) == pass.in.meta().ns;
    if (!uid.empty() && !predecessor) return Ours::kNo;
  }
  // Nobody stamped it: then it is taken for ours only when nothing answers under its name any more.
  const std::string feature = slurm_node_set_name(pass.in.nodeset.spec, pass.in.meta().name);
  const bool featured = std::find(node.features.begin(), node.features.end(), feature) != node.features.end();
  if (!featured) return Ours::kNo;
  const bool silent =
      node.state.base == "DOWN" || node.state.has("NOT_RESPONDING") || slurm::held_by(node.reason, slurm::Owner::kOperator);
  return silent ? Ours::kYes : Ours::kPerhaps;
}

}  // namespace

bool is_orphans(const Pass& pass, std::string_view node) {
  const auto named = [&](const kube::PodPtr& pod) { return slurm_node_name(*pod) == node; };
  return std::ranges::any_of(pass.in.orphans, named) || std::ranges::any_of(pass.in.strangers, named);
}

void delete_workers(Pass& pass) {
  remember_replacements(pass);
  const auto live = static_cast<int>(std::count_if(pass.workers.begin(), pass.workers.end(),
                                                   [](const Worker& w) { return w.life == Life::kLive && !w.goes(); }));
  int missing = pass.goal == Goal::kServe ? std::max(0, pass.desired - live) : 0;
  for (const Worker& worker : pass.workers) {
    if (worker.life == Life::kEnded && pass.goal != Goal::kHold && !pass.in.stopped) {
      delete_ended(pass, worker, missing-- > 0);
    } else if (worker.goes()) {
      ++pass.to_delete;
      pass.out.intent.add(delete_id(worker));
      pass.out.intent.jobs += worker.work.jobs;
      delete_worker(pass, worker);
      if (worker.silent()) {
        pass.lasting_event("Warning", "WorkerLost", "Delete",
                           fmt::format("Pod {} is replaced: {}", pod_text(worker), worker.fate.reason));
      } else if (worker.lost() && !worker.cleared && !worker.outdated()) {
        const std::string what = worker.missing_since ? fmt::format("Slurm has had no node {} since {}", worker.node,
                                                                    core::format_rfc3339(*worker.missing_since))
                                                      : "it is ready, but does not register with Slurm";
        pass.lasting_event("Warning", "SlurmNodeNotRegistered", "Delete",
                           fmt::format("Pod {} is replaced: {}", pod_text(worker), what));
      }
    }
  }
  tell_silence(pass);
}

void delete_records(Pass& pass) {
  if (!pass.slurm_known() || pass.goal == Goal::kHold || pass.goal == Goal::kEndAll || !pass.in.namesake.empty()) return;
  const std::string prefix =
      host_prefix(core::get_string(pass.in.nodeset.spec.pod_template.spec, {"hostname"}), pass.in.meta().name);
  const auto& nodes = pass.in.snapshot->nodes;
  for (auto it = nodes.lower_bound(prefix); it != nodes.end() && it->first.starts_with(prefix); ++it) {
    const std::optional<int> ordinal = ordinal_of(it->first, prefix);
    if (!ordinal || pass.keeps(it->first, *ordinal) || is_orphans(pass, it->first)) continue;
    const Ours ours = is_ours(pass, *it->second);
    if (outlives_worker(pass, *it->second)) continue;
    if (ours == Ours::kPerhaps && pass.doubtful_record.empty()) pass.doubtful_record = it->first;
    if (ours != Ours::kYes) continue;
    if (!pass.slurm_fresh_or_again()) return;
    ++pass.records_left;
    if (pass.stops()) {
      if (!pass.in.doubt.empty()) pass.out.wake_after(kDoubtAgain, pass.in.doubt);
      continue;
    }
    if (reserved(*it->second)) {
      pass.out.intent.add(kDeleteRecord.of(it->first));
      pass.waiting("RecordReserved", "the record of node " + it->first + std::string(kReserved));
      continue;
    }
    const std::string why = "its worker is gone for good";
    pass.step(pass.out.lane("record " + it->first), kDeleteRecord.of(it->first), why,
              slurm::delete_node(pass.cluster(), it->first, why));
  }
}

}  // namespace op::nodeset
