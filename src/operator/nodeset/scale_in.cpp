// Which workers go, and how: ranked, drained, their record deleted (the fence), then their pod.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <tuple>

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

/// A kubelet that does not hear of a worker's slurmd, or of which nothing is heard, ends no job.
int phase_rank(const Worker& worker) {
  if (worker.busy()) return 2;
  if (worker.pod->phase == "Pending") return 0;
  return worker.pod->phase == "Unknown" ? 1 : 2;
}

std::int64_t deletion_cost(const kube::PodRecord& pod) {
  const std::string_view text = pod.meta.annotation(api::kAnnotationPodDeletionCost);
  std::int64_t cost = 0;
  std::from_chars(text.data(), text.data() + text.size(), cost);
  return cost;
}

/// Milliseconds: 0 for a worker that runs nothing, the largest number for a job without limit, or one that is suspended.
std::int64_t deadline_rank(const Worker& worker) {
  if (!worker.work.running) return worker.work.suspended ? INT64_MAX : 0;
  return worker.work.deadline ? worker.work.deadline->since_epoch.count() : INT64_MAX;
}

/// Somebody deleted its record, and no job goes with it: unless it registers again, it can only be replaced.
bool missed(const Pass& pass, const Worker& worker) {
  return pass.slurm_known() && worker.record == nullptr && worker.stamped && worker.ready() &&
         !pass.in.snapshot->job_names(worker.node);
}

/// slurmctld refuses to delete it, however idle: to ask again and again would say nothing new.
bool reserved(const slurm::Node& node) {
  return node.state.has("RESERVED");
}

/// Smaller goes first. Who is lost, to be replaced: where another went in its stead, its place would be given away before it
/// is gone. Then a worker that goes already, so that a second look does not drain a second one.
auto rank(const Pass& pass, const Worker& worker) {
  const kube::PodRecord& pod = *worker.pod;
  const bool chosen = worker.record != nullptr && worker.drained_by_us() &&
                      worker.record->reason == std::string(slurm::kReasonPrefix) + scale_in_reason(pass);
  const core::WallTime never{core::Duration{0}};
  return std::tuple(
      !worker.lost, !worker.cleared, !missed(pass, worker), !chosen, !pod.node_name.empty(), phase_rank(worker),
      pod.ready() || worker.busy(), deletion_cost(pod), keeps_others_word(worker), pass.jobs_waiting_for(worker.node).count > 0,
      deadline_rank(worker), worker.record != nullptr && reserved(*worker.record), !(worker.user_cordon || worker.kube_cordon),
      -worker.ordinal, -pod.ready_since.value_or(never).since_epoch.count(), -pod.meta.created.since_epoch.count());
}

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

plan::ActPtr clear_for_deletion(const kube::PodRecord& pod, const plan::Evidence& evidence) {
  auto act = std::make_shared<kube::Patch>();
  act->resource = kube::resources::kPod;
  act->key = pod.meta.key();
  act->uid = pod.meta.uid;
  act->patch = {{"metadata",
                 {{"annotations",
                   {{std::string(api::kAnnotationDeletionEvidence),
                     fmt::format("{}: {}", plan::to_string(evidence.kind()), evidence.detail())}}}}}};
  return act;
}

void delete_pod(Pass& pass, const Worker& worker, const plan::Evidence& evidence, const std::string& why,
                kube::PodVersion version = kube::PodVersion::kAny, core::Duration late = {}) {
  plan::Lane& lane = lane_of(pass, worker);
  if (!pass.step(lane, {delete_id(worker), why, kube::delete_pod(*worker.pod, evidence, version), late}) || !pass.room(1))
    return;
  lane.then();
  pass.step(lane, pass.event_step("Normal", "SuccessfulDelete", "Delete",
                                  fmt::format("Deleted Pod {}: {}", worker.pod->meta.name, why)));
}

/// The last steps of a worker whose node is known to run nothing: mark the pod, delete the record, delete the pod. A group
/// each: the mark says why the record is gone, should we not live to see the third; the record's deletion is refused while a
/// job holds it. Where Slurm takes seconds to answer, the pod is deleted late; not one that may be registering meanwhile. One
/// whose slurmd never ran may go late only as it was seen, with the mark on it.
void delete_fenced(Pass& pass, const Worker& worker, const plan::Evidence& evidence, const std::string& why) {
  for (const plan::StepId& id : {mark_id(worker), record_id(worker), delete_id(worker)}) {
    pass.wish(id);
    if (!pass.due(id)) return;
  }
  if (!pass.room(kFencedSteps)) return;
  plan::Lane& lane = lane_of(pass, worker);
  const bool confirms = !worker.cleared && evidence.kind() == plan::Evidence::Kind::kDrained && pass.in.meta().terminating();
  if (confirms) {
    // From the mark on Kubernetes' own cleaning may delete the pod, which asks nobody: so Slurm is asked before.
    if (!pass.step(lane, kConfirm.of(worker.node), "the mark lets Kubernetes' own cleaning delete the pod",
                   slurm::confirm_idle(pass.cluster(), worker.node)))
      return;
    lane.then();
  }
  if (!worker.cleared)
    pass.step(lane,
              {mark_id(worker), why, clear_for_deletion(*worker.pod, evidence), confirms ? kConfirmed : core::Duration{}});
  const bool unregistered = evidence.kind() == plan::Evidence::Kind::kNeverRegistered;
  // Its kubelet may start it after all: with the mark on it, it goes as it was seen.
  if (unregistered && !worker.cleared && !slurmd_started(*worker.pod)) return;
  lane.then();
  pass.step(lane, record_id(worker), why,
            worker.silent ? slurm::delete_silent_node(pass.cluster(), worker.node, why)
                          : slurm::delete_node(pass.cluster(), worker.node, why, /*expect_down=*/true));
  lane.then();
  if (!slurmd_started(*worker.pod)) {
    return worker.cleared ? delete_pod(pass, worker, evidence, why, kube::PodVersion::kAsSeen, core::Duration::max())
                          : delete_pod(pass, worker, evidence, why);
  }
  const bool let_go = worker.let_go || !unregistered;
  const core::Duration late = let_go ? core::Duration::max() : worker.lost ? kStillLost : core::Duration{0};
  delete_pod(pass, worker, evidence, why, kube::PodVersion::kAny, late);
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
/// that wait for the node of a worker that only is replaced.
bool leaves_record(const Pass& pass, const Worker& worker) {
  if (worker.record == nullptr) return false;
  if (worker.outdated) return keeps_others_word(worker) || pass.in.snapshot->job_names(worker.node);
  return outlives_worker(pass, *worker.record);
}

/// Without the fence. A slurmd that does not serve is deleted only as it was seen; of one that does, Slurm is asked last.
void delete_leaving_record(Pass& pass, const Worker& worker, const plan::Evidence& evidence, const std::string& why) {
  if (!worker.outdated) {
    if (!pass.step(lane_of(pass, worker), kConfirm.of(worker.node), "its record stays, with the word of who took it from work",
                   slurm::confirm_idle(pass.cluster(), worker.node))) {
      return;
    }
    lane_of(pass, worker).then();
  }
  delete_pod(pass, worker, evidence, why, worker.outdated ? kube::PodVersion::kAsSeen : kube::PodVersion::kAny, kConfirmed);
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
void delete_drained(Pass& pass, const Worker& worker, const std::string& why) {
  if (!leaves_record(pass, worker)) {
    if (!worker.cleared) pass.out.intent.add(mark_id(worker));
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
  const slurm::Snapshot& snapshot = *pass.in.snapshot;
  const std::string& uid = worker.pod->meta.uid;
  if (worker.record == nullptr) {
    // A cleared worker was drained, and then we deleted its record: nothing can have been started on it since. What was seen of
    // one that never started was an earlier pod's.
    const bool stamped = worker.stamped && !worker.cleared && !worker.outdated;
    const std::optional<core::MonoTime> since = pass.may_register_since(worker);
    const auto evidence =
        worker.lost && worker.missing_since
            ? slurm::SnapshotWitness::forgotten(snapshot, worker.node, uid, *worker.missing_since, pass.in.mono)
            : slurm::SnapshotWitness::never_registered(snapshot, worker.node, uid, stamped, since, pass.in.mono);
    if (evidence) {
      delete_fenced(pass, worker, *evidence, why);
    } else if (!stamped) {
      pass.waiting("ScalingIn",
                   fmt::format("Pod {} may still be starting: it is drained when it registers with Slurm, or deleted if "
                               "it does not register within three minutes",
                               pod_text(worker)));
    } else if (missed(pass, worker) && pass.registration_left(worker).count() > 0) {
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
  if (worker.silent) {
    if (const auto evidence = silence_of(pass, worker)) delete_fenced(pass, worker, *evidence, why);
    return;
  }
  if (!worker.busy() && !reserved(*worker.record)) {
    if (const auto evidence = slurm::SnapshotWitness::drained(snapshot, worker.node, uid, pass.in.mono)) {
      if (leaves_record(pass, worker)) return delete_leaving_record(pass, worker, *evidence, why);
      tell_waiting_jobs(pass, worker);
      delete_fenced(pass, worker, *evidence, why);
      return;
    }
  }
  pass.waiting("ScalingIn", what_holds(worker));
}

void delete_worker(Pass& pass, const Worker& worker, const std::string& why) {
  const kube::PodRecord& pod = *worker.pod;
  if (pass.in.stopped) return pass.withheld.push_back(pod.meta.name);
  if (pass.goal == Goal::kEndAll) {
    if (const auto evidence = kube::OwnerWitness::owner_ends(pass.in.controller->meta, pod)) {
      delete_pod(pass, worker, *evidence, why);
    }
    return;
  }
  if (const auto evidence = kube::PodWitness::never_started(pod)) {
    delete_pod(pass, worker, *evidence, why);
    return;
  }
  if (!pass.in.doubt.empty()) {
    pass.out.wake_after(kDoubtAgain, pass.in.doubt);
    return pass.withheld.push_back(pod.meta.name);
  }
  delete_drained(pass, worker, why);
}

/// How often a worker was replaced lately is known from the deletions: they are kept in mind while its successors live.
void remember_replacements(Pass& pass) {
  for (auto it = pass.in.outcomes.lower_bound(kDeletePod); it != pass.in.outcomes.end() && it->first.is(kDeletePod); ++it) {
    if (pass.in.mono - it->second.last < kRemember) pass.out.remember(it->first);
  }
}

/// Ended pods make room for their successors. One that ended soon after it was made, again and again, is not replaced as fast.
void delete_ended(Pass& pass, const Worker& worker, bool replaced) {
  const auto evidence = kube::PodWitness::ended(*worker.pod);
  if (!evidence) return;
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
  delete_pod(pass, worker, *evidence, why);
}

std::string why_lost(const Worker& worker) {
  if (worker.silent)
    return "its Kubernetes node " + worker.pod->node_name + " is lost, and its slurmd does not respond to Slurm";
  if (worker.outdated) return "it never started, and its template has changed since";
  if (worker.missing_since) return "its Slurm node was deleted while it ran, and its slurmd does not register again by itself";
  return worker.let_go ? "its Slurm node was deleted, and it does not register again" : "it never registered with Slurm";
}

std::string why_workers_go(const Pass& pass) {
  switch (pass.goal) {
    case Goal::kEndAll:
      return "Controller " + pass.in.controller->meta.name + " is being deleted, and with it the cluster";
    case Goal::kDrainAll:
      return pass.in.meta().terminating() ? self_text(pass) + " is being deleted"
                                          : "Controller " + pass.in.controller->meta.name + " is being deleted";
    default:
      return fmt::format("{} wants {} workers", self_text(pass), pass.desired);
  }
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
  const bool silent = node.state.base == "DOWN" || node.state.has("NOT_RESPONDING") || slurm::ours(node.reason);
  return silent ? Ours::kYes : Ours::kPerhaps;
}

}  // namespace

bool is_orphans(const Pass& pass, std::string_view node) {
  const auto named = [&](const kube::PodPtr& pod) { return slurm_node_name(*pod) == node; };
  return std::ranges::any_of(pass.in.orphans, named) || std::ranges::any_of(pass.in.strangers, named);
}

void choose_victims(Pass& pass) {
  if (pass.goal == Goal::kHold) return;
  std::vector<Worker*> live;
  for (Worker& worker : pass.workers) {
    if (worker.life == Life::kLive) live.push_back(&worker);
  }
  std::size_t surplus = live.size();
  if (pass.goal == Goal::kServe) {
    const auto wanted = static_cast<std::size_t>(pass.desired);
    const auto lost = static_cast<std::size_t>(std::count_if(live.begin(), live.end(), [](Worker* w) { return w->lost; }));
    surplus = live.size() - lost > wanted ? live.size() - wanted : lost;
  }
  if (surplus == 0) return;
  std::vector<std::pair<decltype(rank(pass, *live.front())), Worker*>> ranked;
  ranked.reserve(live.size());
  for (Worker* worker : live) ranked.emplace_back(rank(pass, *worker), worker);
  std::sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < surplus; ++i) ranked[i].second->victim = true;
}

void delete_workers(Pass& pass) {
  remember_replacements(pass);
  const std::string why = why_workers_go(pass);
  const auto live = static_cast<int>(std::count_if(pass.workers.begin(), pass.workers.end(),
                                                   [](const Worker& w) { return w.life == Life::kLive && !w.victim; }));
  int missing = pass.goal == Goal::kServe ? std::max(0, pass.desired - live) : 0;
  for (const Worker& worker : pass.workers) {
    if (worker.life == Life::kEnded && pass.goal != Goal::kHold && !pass.in.stopped) {
      delete_ended(pass, worker, missing-- > 0);
    } else if (worker.victim) {
      ++pass.to_delete;
      pass.out.intent.add(delete_id(worker));
      pass.out.intent.jobs += worker.work.jobs;
      delete_worker(pass, worker, worker.lost ? why_lost(worker) : why);
      if (worker.silent) {
        pass.lasting_event("Warning", "WorkerLost", "Delete",
                           fmt::format("Pod {} is replaced: {}", pod_text(worker), why_lost(worker)));
      } else if (worker.lost && !worker.cleared && !worker.outdated) {
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
