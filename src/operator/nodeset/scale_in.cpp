// Deletes the workers that fates.cpp has chosen. If a worker might run jobs, the operator waits until its node is drained. Then
// it deletes the record of the node in Slurm, and then the pod: without the record, no job can start on the worker. Also
// deletes pods that have ended.
#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "api/well_known.hpp"
#include "kube/acts.hpp"
#include "operator/common/slinky.hpp"
#include "operator/nodeset/parts.hpp"
#include "slinky/worker_names.hpp"
#include "slurm/acts.hpp"

namespace op::nodeset {
namespace {

constexpr core::Duration kWatchSlurm{300};
/// The time between two checks while jobs or a reservation hold a worker. When the jobs or the reservation end, an event wakes
/// the NodeSet, so these checks can be rare.
constexpr core::Duration kWatchJobs{60000};
/// The number of steps that delete a worker together with its record: confirm, mark, delete the record, delete the pod, event.
constexpr std::size_t kFencedSteps = 5;
/// The pod of a worker that never registered is deleted at most this long after the last check in Slurm. Later, the worker
/// could have registered and got a job.
constexpr core::Duration kStillLost{5000};
/// The time from the beginning of the check of a node in Slurm within which the node's pod can be deleted. The time is long
/// because Slurm can take seconds to answer.
constexpr core::Duration kConfirmed{30000};
/// If Slurm has not answered for this long, the operator reports this, so that a person examines the cause.
constexpr core::Duration kSilence{5 * 60 * 1000};
constexpr std::string_view kWaitingForSlurm = "WaitingForSlurm";
/// If a worker ends within this time after it replaced another worker, its own replacement is delayed by a backoff.
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

plan::Lane& lane_of(const Worker& worker, Draft& draft) {
  return draft.lane("delete " + worker.pod->meta.name);
}

plan::ActPtr clear_for_deletion(const kube::PodRecord& pod, const kube::PodEvidence& evidence) {
  const std::string text = fmt::format("{}: {}", evidence.kind(), evidence.detail());
  return kube::patch_any_version(kube::resources::kPod, pod.meta,
                                 {{"metadata", {{"annotations", {{std::string(api::kAnnotationDeletionEvidence), text}}}}}});
}

/// Deletes the worker's pod and reports the deletion. `late`: see plan::Step.
void delete_pod(const View& view, const Worker& worker, const std::string& why, plan::ActPtr deletion, Draft& draft,
                core::Duration late = {}) {
  plan::Lane& lane = lane_of(worker, draft);
  if (!draft.step(lane, {delete_id(worker), why, std::move(deletion), late})) return;
  draft.deletes(*worker.pod);
  if (!draft.has_room(1)) return draft.wake(kPassFull);
  lane.then();
  draft.step(lane, view.event_step("Normal", "SuccessfulDelete", "Delete",
                                   fmt::format("Deleted Pod {}: {}", worker.pod->meta.name, why)));
}

/// Adds a step that asks Slurm a last time whether the worker's node is idle. Returns false if the step cannot be added now.
bool confirm_idle(const Worker& worker, const slurm::Drained& drained, std::string why, Draft& draft) {
  plan::Lane& lane = lane_of(worker, draft);
  if (!draft.step(lane, kConfirm.of(worker.node), std::move(why), slurm::confirm_idle(drained))) return false;
  lane.then();
  return true;
}

/// Adds the last steps for a worker whose node is known to run nothing: mark the pod, delete the record, delete the pod. Each
/// step is a group of its own. If the operator ends between the steps, the mark explains the missing record. slurmctld refuses
/// to delete the record while a job holds the node, so the deletion of the pod after that is safe. If Slurm takes seconds to
/// answer, the pod is deleted nevertheless, unless the worker might have registered in the meantime. If slurmd never ran, such
/// a late deletion requires the version of the pod that was seen with the mark.
template <class Kind>
void delete_with_record(const View& view, const Worker& worker, const WorkerEvidence<Kind>& evidence, Draft& draft) {
  constexpr bool kUnregistered = std::is_same_v<Kind, slurm::NeverRegistered>;
  const std::string& why = worker.fate.reason;
  for (const plan::StepId& id : {mark_id(worker), record_id(worker), delete_id(worker)}) {
    if (!draft.wish_now(id)) return;
  }
  if (!draft.has_room(kFencedSteps)) return draft.wake(kPassFull);
  plan::Lane& lane = lane_of(worker, draft);
  core::Duration mark_late{0};
  if constexpr (std::is_same_v<Kind, slurm::Drained>) {
    if (!worker.cleared_for_deletion && view.in.meta().terminating()) {
      // The mark allows Kubernetes' garbage collector to delete the pod without any check, so ask Slurm before the pod is
      // marked.
      if (!confirm_idle(worker, evidence.node(), "the evidence on the pod allows Kubernetes to delete it", draft)) return;
      mark_late = kConfirmed;
    }
  }
  if (!worker.cleared_for_deletion)
    draft.step(lane, {mark_id(worker), why, clear_for_deletion(*worker.pod, evidence), mark_late});
  // The kubelet might still start slurmd. So only the next pass deletes the pod, and only in the version that has the mark.
  if (kUnregistered && !worker.cleared_for_deletion && !slurmd_started(*worker.pod)) return;
  lane.then();
  draft.step(lane, record_id(worker), why, slurm::delete_node(slurm::Owner::kOperator, evidence.node(), why));
  lane.then();
  if (!slurmd_started(*worker.pod)) {
    if (!worker.cleared_for_deletion)
      return delete_pod(view, worker, why, kube::delete_fenced_pod(*worker.pod, evidence), draft);
    return delete_pod(view, worker, why, kube::delete_fenced_pod(*worker.pod, evidence, kube::PodVersion::kAsSeen), draft,
                      core::Duration::max());
  }
  const bool let_go = worker.deregistered || !kUnregistered;
  const core::Duration late = let_go ? core::Duration::max() : worker.lost() ? kStillLost : core::Duration{0};
  delete_pod(view, worker, why, kube::delete_fenced_pod(*worker.pod, evidence), draft, late);
}

/// Deletes the worker's pod, but not its record in Slurm. This is safe because a live check of the node directly precedes the
/// deletion. If slurmd never ran, no check is needed, but the pod is deleted only in the version that was seen.
void delete_leaving_record(const View& view, const Worker& worker, const WorkerEvidence<slurm::Drained>& evidence,
                           Draft& draft) {
  const std::string& why = worker.fate.reason;
  if (worker.outdated()) {
    return delete_pod(view, worker, why, kube::delete_pod(*worker.pod, evidence, kube::PodVersion::kAsSeen), draft, kConfirmed);
  }
  const char* kept = worker.updates()       ? "its record is kept until its successor is created"
                     : may_register(worker) ? "its record keeps the node out of service if its slurmd registers now"
                                            : "its record is kept, with the reason of whoever took the node out of service";
  if (!confirm_idle(worker, evidence.node(), kept, draft)) return;
  // An update would lose changes that users make to the pod itself. So the update deletes only the version of the pod that was
  // seen.
  const auto version = worker.updates() ? kube::PodVersion::kAsSeen : kube::PodVersion::kAny;
  delete_pod(view, worker, why, kube::delete_fenced_pod(*worker.pod, evidence, version), draft, kConfirmed);
}

/// True if the worker's record must stay in Slurm after the pod is deleted. In an update, the successor uses the record. If the
/// worker is stuck with an outdated template, its record stays if others hold the node, if an earlier worker made the record,
/// or if jobs require the node. The record of any other worker stays if an administrator's drain, fail or down also applies to
/// the next worker of the name.
bool leaves_record(const View& view, const Worker& worker) {
  if (worker.record == nullptr) return false;
  if (worker.updates()) return true;
  if (worker.outdated()) return held_by_others(worker) || may_register(worker) || view.in.snapshot->job_names(worker.node);
  return outlives_worker(view, *worker.record);
}

/// When the record of the node is deleted, reports the pending jobs that require the node. Users can still cancel these jobs or
/// scale out, until slurmctld is reconfigured and ends the jobs.
void tell_waiting_jobs(const Worker& worker, const WaitingJobsByNode& waiting_jobs, Draft& draft) {
  const std::string names = waiting_text(waiting_jobs, worker.node);
  if (names.empty()) return;
  draft.lasting_event(
      "Warning", "JobsLoseTheirNode", "Delete",
      fmt::format("Node {} is being deleted in Slurm. The next reconfigure ends the pending jobs that require it: {}",
                  worker.node, names));
}

/// Deletes a worker that has no node in Slurm, if there is evidence that allows the deletion. Otherwise reports what the
/// deletion waits for.
void delete_unregistered(const View& view, const Worker& worker, Draft& draft) {
  const bool stamped = worker.stamped && !worker.cleared_for_deletion && !worker.outdated();
  if (worker.evidence.forgotten) {
    delete_with_record(view, worker, *worker.evidence.forgotten, draft);
  } else if (worker.evidence.never_registered) {
    delete_with_record(view, worker, *worker.evidence.never_registered, draft);
  } else if (!worker.suspect.empty()) {
    draft.wrong(kNotRegistered, suspect_text(worker), "Delete");
  } else if (!stamped) {
    draft.waiting("ScalingIn",
                  fmt::format("Pod {} may still be starting: it is drained when it registers with Slurm, or deleted if "
                              "it does not register within three minutes",
                              pod_text(worker)));
  } else if (lacks_record(view, worker) && worker.registration_left.count() > 0) {
    draft.waiting("ScalingIn", fmt::format("Pod {} will be deleted when Slurm has had no node {} for three minutes",
                                           pod_text(worker), worker.node));
  } else {
    draft.wrong(kNotRegistered,
                fmt::format("Pod {}: Slurm no longer has its node {}, so the operator cannot tell whether it runs jobs: "
                            "delete the pod by hand if it runs none",
                            pod_text(worker), worker.node),
                "Delete");
  }
}

/// The progress of a worker's deletion.
enum class Progress {
  kUnderWay,
  kHeld,         ///< The worker is not drained yet, or jobs or a reservation hold its node.
  kWithheld,     ///< Deletions are stopped, or Slurm's answers are in doubt.
  kAwaitsSlurm,  ///< Slurm's last answer is too old.
};

/// True if there is evidence that allows the deletion of the worker.
bool has_evidence(const Worker& worker) {
  const SlotEvidence& evidence = worker.evidence;
  return evidence.never_started || evidence.drained || evidence.never_registered || evidence.forgotten || evidence.silent;
}

/// Deletes a worker that might run jobs now or have run jobs, as soon as Slurm's answers allow the deletion.
Progress delete_drained(const View& view, const Worker& worker, const WaitingJobsByNode& waiting_jobs, Draft& draft) {
  if (!leaves_record(view, worker)) {
    if (!worker.cleared_for_deletion && !may_register(worker)) draft.intent().add(mark_id(worker));
    draft.intent().add(record_id(worker));
  }
  if (!draft.has_room(kFencedSteps)) {
    draft.wake(kPassFull);
    for (const plan::StepId& id : {mark_id(worker), record_id(worker), delete_id(worker)}) draft.wish(id);
    return Progress::kUnderWay;
  }
  // Slurm does not delete the record of a reserved node, so the deletion waits. An update does not delete the record, so the
  // update can continue.
  const bool is_reserved = worker.record != nullptr && reserved(*worker.record) && !worker.updates();
  const bool held = worker.has_flag("DRAIN") && (worker.work.jobs > 0 || is_reserved);
  draft.wake_after(held && view.slurm_fresh() ? kWatchJobs : kWatchSlurm, "waiting until Slurm allows the deletion of workers");
  if (!view.slurm_fresh()) {
    const bool none = view.in.snapshot == nullptr || view.in.snapshot->error.empty();
    draft.waiting(kWaitingForSlurm, none ? "waiting for Slurm" : "waiting for Slurm: " + view.in.snapshot->error);
    return Progress::kAwaitsSlurm;
  }
  if (has_evidence(worker) && !give_up_claims(view, worker, draft)) return Progress::kUnderWay;
  if (worker.record == nullptr) {
    delete_unregistered(view, worker, draft);
  } else if (!worker.suspect.empty()) {
    draft.wrong(kNotRegistered, suspect_text(worker), "Delete");
  } else if (worker.silent() && !may_register(worker)) {
    if (worker.evidence.silent) delete_with_record(view, worker, *worker.evidence.silent, draft);
  } else if (!worker.evidence.drained || worker.busy() || is_reserved) {
    return Progress::kHeld;
  } else {
    const bool leaves = leaves_record(view, worker);
    if (!leaves) tell_waiting_jobs(worker, waiting_jobs, draft);
    // If an earlier worker left the record, the record is deleted once the pod is gone.
    if (leaves || may_register(worker)) {
      delete_leaving_record(view, worker, *worker.evidence.drained, draft);
    } else {
      delete_with_record(view, worker, *worker.evidence.drained, draft);
    }
  }
  return Progress::kUnderWay;
}

Progress delete_worker(const View& view, const Worker& worker, const Fates& fates, Draft& draft) {
  const kube::PodRecord& pod = *worker.pod;
  const std::string& why = worker.fate.reason;
  if (view.in.stopped) return Progress::kWithheld;
  if (worker.updates() && fates.rollout.unchecked) return Progress::kUnderWay;
  if (worker.fate.kind == Fate::Kind::kEnd) {
    if (worker.evidence.owner_ends) delete_pod(view, worker, why, kube::delete_pod(pod, *worker.evidence.owner_ends), draft);
    return Progress::kUnderWay;
  }
  if (awaits_pin(view, worker)) return Progress::kUnderWay;
  if (worker.evidence.never_started) {
    // While Slurm's answers are in doubt, the worker's PersistentVolumeClaims are kept.
    if (view.in.doubt.empty() && !give_up_claims(view, worker, draft)) return Progress::kUnderWay;
    delete_pod(view, worker, why, kube::delete_pod(pod, *worker.evidence.never_started), draft);
    return Progress::kUnderWay;
  }
  if (!view.in.doubt.empty() && !worker.loss_confirmed) {
    draft.wake_after(kDoubtAgain, view.in.doubt);
    return Progress::kWithheld;
  }
  return delete_drained(view, worker, fates.waiting_jobs, draft);
}

/// Reports a worker that is replaced although no user asked for that.
void tell_replacement(const Worker& worker, Draft& draft) {
  if (worker.silent()) {
    draft.lasting_event("Warning", "WorkerLost", "Delete",
                        fmt::format("Pod {} is replaced: {}", pod_text(worker), worker.fate.reason));
  } else if (worker.lost() && !worker.cleared_for_deletion && !worker.outdated() && worker.prospect != Prospect::kUnpinned) {
    const std::string what = worker.missing_since ? fmt::format("Slurm has had no node {} since {}", worker.node,
                                                                core::format_rfc3339(*worker.missing_since))
                                                  : "it is ready, but does not register with Slurm";
    draft.lasting_event("Warning", kNotRegistered, "Delete", fmt::format("Pod {} is replaced: {}", pod_text(worker), what));
  }
}

/// Keeps the outcome of each deletion for kRemember, to count how often a worker was replaced.
void remember_replacements(const View& view, Draft& draft) {
  for (auto it = view.in.outcomes.lower_bound(kDeletePod); it != view.in.outcomes.end() && it->first.is(kDeletePod); ++it) {
    if (view.in.mono - it->second.last < kRemember) draft.remember(it->first);
  }
}

/// Deletes the pod of a worker that has ended, so that a successor can be created. If workers of the same place repeatedly end
/// soon after their creation, each deletion waits longer than the previous one.
void delete_ended(const View& view, const Worker& worker, bool replaced, Draft& draft) {
  if (!worker.evidence.ended) return;
  const plan::StepId id = delete_id(worker);
  draft.wish(id);
  const auto before = view.in.outcomes.find(id);
  if (replaced && before != view.in.outcomes.end() && before->second.state == plan::Outcome::State::kDone) {
    const core::Duration waited = view.in.mono - before->second.last;
    const core::Duration wait = backoff(before->second);
    if (waited < wait) {
      draft.wake_after(wait - waited, "a worker ended again soon after it was replaced");
      draft.waiting("Replacing", fmt::format("Pod {} has ended {} times, and will be replaced in {} s", pod_text(worker),
                                             before->second.count + 1, (wait - waited).count() / 1000 + 1));
      return;
    }
  }
  const std::string why =
      fmt::format("its phase is {}{}", worker.pod->phase, worker.pod->reason.empty() ? "" : " (" + worker.pod->reason + ")");
  delete_pod(view, worker, why, kube::delete_pod(*worker.pod, *worker.evidence.ended), draft);
}

/// Reports that Slurm does not answer. Until Slurm answers, no worker that has run is deleted. Users need this report because
/// Slurm might never answer.
void tell_silence(const View& view, Draft& draft) {
  const std::optional<ControllerView>& controller = view.in.controller;
  if (view.goal != Goal::kDrainAll || !controller || view.stops() || view.slurm_known()) return;
  const Wait wait =
      view.wait_at_most(kSilence, kWaitingForSlurm, "waiting for Slurm to answer, to learn which workers run no jobs");
  draft.waiting(wait);
  if (!wait.over()) return;
  std::vector<std::string> ways;
  if (controller->external) {
    // The deletion of an external Controller always drains its workers first, so it does not end the cluster at once.
    ways.emplace_back("set the annotation " + std::string(api::kAnnotationPodRelease) + ": \"true\" of its worker pods");
    ways.emplace_back("delete these pods");
  } else {
    if (controller->drain_on_deletion) ways.emplace_back("set spec.deletionPolicy of the Controller to Immediate");
    if (!controller->meta.terminating()) ways.emplace_back("delete the Controller");
  }
  const std::string text = fmt::format(
      "Slurm has not answered for 5 minutes. The workers are not deleted, because they may run jobs. For the cause, see the "
      "conditions of Controller {}. To end the cluster anyway, {}: this ends the workers and their jobs at once",
      controller->meta.key().str(), fmt::join(ways, " and "));
  draft.lasting_event("Warning", kWaitingForSlurm, "Delete", text);
  draft.problem({std::string(kWaitingForSlurm), text});
}

}  // namespace

std::string suspect_text(const Slot& worker) {
  if (worker.record != nullptr) {
    return fmt::format(
        "Pod {}: since its slurmd was started again, {} may be this worker, which was {} before, so it is neither updated nor "
        "deleted: drain {} in Slurm, and delete the pod when no job runs there",
        pod_text(worker), worker.suspect, worker.node, worker.suspect);
  }
  return fmt::format(
      "Pod {}: Slurm has no node {}, but {}, which may be this worker under another name, so it is not replaced: drain {} in "
      "Slurm, and delete the pod when no job runs there",
      pod_text(worker), worker.node, worker.suspect, worker.suspect);
}

ScaleIn delete_workers(const View& view, const Fates& fates, Draft& draft) {
  remember_replacements(view, draft);
  const auto live = static_cast<int>(
      std::ranges::count_if(fates.workers, [](const Worker& w) { return w.life == Life::kLive && !w.goes(); }));
  int missing = view.goal == Goal::kServe ? std::max(0, view.desired - live) : 0;
  ScaleIn out;
  bool awaits_slurm = false;
  for (const Worker& worker : fates.workers) {
    if (worker.life == Life::kEnded && view.goal != Goal::kHold && !view.in.stopped) {
      delete_ended(view, worker, missing-- > 0, draft);
    } else if (worker.goes()) {
      const bool renamed = worker.fate.cause == Fate::Cause::kRenamed;
      if (!worker.updates()) {
        if (!renamed) ++out.to_delete;
      } else if (worker.record != nullptr && (worker.busy() || !worker.evidence.drained)) {
        out.updating.push_back(what_holds(view, worker));
      }
      draft.intent().add(delete_id(worker));
      intend_for_claims(view, worker, draft.intent());
      draft.intent().jobs += worker.work.jobs;
      const Progress progress = delete_worker(view, worker, fates, draft);
      // Updates, switches of the scalingMode and renames are reported elsewhere.
      const bool told = worker.updates() || worker.fate.cause == Fate::Cause::kSwitched || renamed;
      if (progress == Progress::kHeld && !told) {
        out.held.push_back(what_holds(view, worker));
        out.held_until = std::max(out.held_until, deadline_rank(worker));
      }
      if (progress == Progress::kWithheld) out.withheld.push_back(worker.pod->meta.name);
      awaits_slurm = awaits_slurm || progress == Progress::kAwaitsSlurm;
      tell_replacement(worker, draft);
    }
  }
  if (awaits_slurm) tell_silence(view, draft);
  return out;
}

}  // namespace op::nodeset
