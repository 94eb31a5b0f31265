// Deletes the workers that fates.cpp has chosen. If a worker may run jobs, its record in Slurm is deleted first, once it is
// drained, and then its pod: without the record, no job can start there. Also deletes pods that have ended.
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
/// The time between two checks while jobs or a reservation hold a worker. When these end, the NodeSet is woken without a check.
constexpr core::Duration kWatchJobs{60000};
/// The number of steps of a deletion with record: confirm, mark, delete the record, delete the pod, event.
constexpr std::size_t kFencedSteps = 5;
/// How long after the last check in Slurm the pod of a worker that never registered may be deleted. After that, the worker
/// could have registered and got a job.
constexpr core::Duration kStillLost{5000};
/// How long Slurm's answer about a node allows the deletion of the node's pod. Slurm may take seconds to answer.
constexpr core::Duration kConfirmed{30000};
/// If Slurm has not answered for this long, the operator reports it so that a person examines it.
constexpr core::Duration kSilence{5 * 60 * 1000};
constexpr std::string_view kWaitingForSlurm = "WaitingForSlurm";
/// If a worker ends within this time after it replaced another one, its own replacement is delayed by a backoff.
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

/// Deletes the pod and reports it. `late`: see plan::Step.
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

/// Adds a step that asks Slurm a last time about the worker's node. Returns false if that is not possible now.
bool confirm_idle(const Worker& worker, const slurm::Drained& drained, std::string why, Draft& draft) {
  plan::Lane& lane = lane_of(worker, draft);
  if (!draft.step(lane, kConfirm.of(worker.node), std::move(why), slurm::confirm_idle(drained))) return false;
  lane.then();
  return true;
}

/// Adds the last steps for a worker whose node is known to run nothing: mark the pod, delete the record, delete the pod. Each
/// step is a group of its own. The mark explains the missing record if the operator ends in between. slurmctld refuses to
/// delete the record while a job holds the node, which makes the deletion of the pod safe. The pod may be deleted late if Slurm
/// takes seconds to answer, except for a worker that may register in the meantime. If slurmd never ran, the late deletion
/// requires the version of the pod that was seen, with the mark on it.
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
      // The mark allows Kubernetes' garbage collector to delete the pod without any check, so ask Slurm before.
      if (!confirm_idle(worker, evidence.node(), "the mark lets Kubernetes' own cleaning delete the pod", draft)) return;
      mark_late = kConfirmed;
    }
  }
  if (!worker.cleared_for_deletion)
    draft.step(lane, {mark_id(worker), why, clear_for_deletion(*worker.pod, evidence), mark_late});
  // The kubelet may still start slurmd, so the next pass deletes the pod in the version with the mark.
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

/// Deletes the worker's pod and leaves its record. A live check of the node directly before makes this safe. If slurmd never
/// ran, no check is needed, but the pod is deleted only in the version that was seen.
void delete_leaving_record(const View& view, const Worker& worker, const WorkerEvidence<slurm::Drained>& evidence,
                           Draft& draft) {
  const std::string& why = worker.fate.reason;
  if (worker.outdated()) {
    return delete_pod(view, worker, why, kube::delete_pod(*worker.pod, evidence, kube::PodVersion::kAsSeen), draft, kConfirmed);
  }
  const char* kept = worker.updates()       ? "its record stays until its successor is created"
                     : may_register(worker) ? "its record keeps it from work, should its slurmd register now"
                                            : "its record stays, with the word of who took it from work";
  if (!confirm_idle(worker, evidence.node(), kept, draft)) return;
  // An update would lose what users set on the pod itself, so it deletes only the version that was seen.
  const auto version = worker.updates() ? kube::PodVersion::kAsSeen : kube::PodVersion::kAny;
  delete_pod(view, worker, why, kube::delete_fenced_pod(*worker.pod, evidence, version), draft, kConfirmed);
}

/// True if the record must stay. An update leaves it to the successor. A worker that is stuck with an outdated template leaves
/// it if others hold the node, if an earlier worker made the record, or if jobs require the node. Any other worker leaves it if
/// an administrator's drain, fail or down also applies to the next worker of the name.
bool leaves_record(const View& view, const Worker& worker) {
  if (worker.record == nullptr) return false;
  if (worker.updates()) return true;
  if (worker.outdated()) return held_by_others(worker) || may_register(worker) || view.in.snapshot->job_names(worker.node);
  return outlives_worker(view, *worker.record);
}

/// Reports the pending jobs that require the node when its record is deleted. Users can still cancel these jobs or scale out,
/// until slurmctld is reconfigured and ends the jobs.
void tell_waiting_jobs(const Worker& worker, const WaitingJobsByNode& waiting_jobs, Draft& draft) {
  const std::string names = waiting_text(waiting_jobs, worker.node);
  if (names.empty()) return;
  draft.lasting_event(
      "Warning", "JobsLoseTheirNode", "Delete",
      fmt::format("Node {} is being deleted in Slurm. The next reconfigure ends the pending jobs that require it: {}",
                  worker.node, names));
}

/// Deletes a worker without a node in Slurm if there is evidence that allows it. Otherwise reports what the deletion waits for.
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
  kHeld,         ///< The worker is not drained yet, or jobs or a reservation hold it.
  kWithheld,     ///< Deletions are stopped, or Slurm's answers are in doubt.
  kAwaitsSlurm,  ///< Slurm's last answer is too old.
};

/// True if there is evidence that the worker may be deleted.
bool has_evidence(const Worker& worker) {
  const SlotEvidence& evidence = worker.evidence;
  return evidence.never_started || evidence.drained || evidence.never_registered || evidence.forgotten || evidence.silent;
}

/// Deletes a worker that may have run jobs or may run them, as soon as Slurm's answers allow it.
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
  // Slurm does not delete the record of a reserved node. An update does not delete the record, so it can continue.
  const bool is_reserved = worker.record != nullptr && reserved(*worker.record) && !worker.updates();
  const bool held = worker.has_flag("DRAIN") && (worker.work.jobs > 0 || is_reserved);
  draft.wake_after(held && view.slurm_fresh() ? kWatchJobs : kWatchSlurm, "waiting for Slurm to let workers go");
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
    // While Slurm's answers are in doubt, the worker's claims are kept.
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

/// Keeps the outcomes of deletions while successors are new, to count how often a worker was replaced.
void remember_replacements(const View& view, Draft& draft) {
  for (auto it = view.in.outcomes.lower_bound(kDeletePod); it != view.in.outcomes.end() && it->first.is(kDeletePod); ++it) {
    if (view.in.mono - it->second.last < kRemember) draft.remember(it->first);
  }
}

/// Deletes the pod of a worker that has ended, so that a successor can be created. If workers of one place end soon after their
/// creation again and again, waits longer each time.
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

/// Reports that Slurm does not answer. No worker that has run is deleted until Slurm answers, and Slurm may never answer.
void tell_silence(const View& view, Draft& draft) {
  const std::optional<ControllerView>& controller = view.in.controller;
  if (view.goal != Goal::kDrainAll || !controller || view.stops() || view.slurm_known()) return;
  const Wait wait =
      view.wait_at_most(kSilence, kWaitingForSlurm, "waiting for Slurm to answer, to learn which workers run no jobs");
  draft.waiting(wait);
  if (!wait.over()) return;
  std::vector<std::string> ways;
  if (controller->external) {
    // The deletion of an external Controller always drains its workers.
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
