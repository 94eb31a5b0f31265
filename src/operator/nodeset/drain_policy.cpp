// spec.drainPolicy: requeues, cancels or reports jobs that keep workers from being deleted.
#include <fmt/format.h>

#include <cstdint>

#include "operator/nodeset/parts.hpp"
#include "slurm/acts.hpp"

namespace op::nodeset {
namespace {

constexpr Change kTimeOver{core::Duration{1000}, "the timeout of a drain is over"};

std::string jobs_text(int jobs) {
  return fmt::format("{} job{}", jobs, jobs == 1 ? "" : "s");
}

/// Returns the time as "2026-01-02 03:04 UTC".
std::string minute_text(core::WallTime at) {
  std::string text = core::format_rfc3339(at).substr(0, 16);
  text[10] = ' ';
  return text + " UTC";
}

std::string_view verb_of(api::OnDrainTimeout what) {
  return what == api::OnDrainTimeout::kCancel ? "cancelled" : "requeued";
}

/// Returns the time until the timeout of the drain policy. Zero or less: the timeout has passed. nullopt: the NodeSet has no
/// drain policy, or the worker is not drained for its deletion.
std::optional<core::Duration> time_left(const View& view, const Slot& worker) {
  const auto& policy = view.in.nodeset.spec.drain_policy;
  if (!policy || !worker.drained_for) return std::nullopt;
  return policy->timeout - *worker.drained_for;
}

bool can_requeue(const View& view) {
  return view.in.snapshot->capabilities.requeue;
}

/// Returns why the operator does not end the worker's jobs although the timeout has passed. "": there is no reason.
std::string why_not_ended(const View& view, const Slot& worker) {
  if (view.in.nodeset.spec.drain_policy->on_timeout == api::OnDrainTimeout::kRequeue && !can_requeue(view))
    return "its Slurm cannot requeue them";
  return worker.evidence.timed_out ? "" : "they cannot be requeued";
}

/// Describes what the policy does to the worker's jobs, and when.
std::string policy_text(const View& view, const Slot& worker) {
  const std::optional<core::Duration> left = time_left(view, worker);
  if (!left || view.in.nodeset.spec.drain_policy->on_timeout == api::OnDrainTimeout::kWait) return {};
  const std::string_view verb = verb_of(view.in.nodeset.spec.drain_policy->on_timeout);
  const core::WallTime at = view.in.now + *left;
  if (left->count() > 0) {
    const bool sooner = worker.work.running && worker.work.deadline && *worker.work.deadline <= at;
    return sooner ? "" : fmt::format(", {} at {}", verb, minute_text(at));
  }
  const std::string why = why_not_ended(view, worker);
  return why.empty() ? fmt::format(", to be {} now", verb) : fmt::format(", not {}: {}", verb, why);
}

/// Reports the jobs that still run after the timeout, if the policy only waits for jobs and does not end them.
void tell_overdue(const View& view, const Worker& worker, Draft& draft) {
  std::vector<std::string> ids;
  for (const auto& job : view.in.snapshot->jobs_on(worker.node)) ids.push_back(job->full_id());
  if (ids.empty()) return;
  draft.lasting_event(
      "Warning", "DrainTimeout", "Wait",
      fmt::format("Node {} has been drained for longer than spec.drainPolicy.timeout, and still waits for jobs {}", worker.node,
                  some_of(ids)));
}

/// Requeues or cancels the jobs that the evidence names, after an event has reported them.
void end_jobs_of(const View& view, const Worker& worker, Draft& draft) {
  const slurm::DrainTimedOut& evidence = *worker.evidence.timed_out;
  const bool cancels = evidence.how() == slurm::EndOfJobs::kCancel;
  const plan::StepId id = (cancels ? kCancelJobs : kRequeueJobs).of(worker.node);
  if (!cancels && !can_requeue(view)) {
    return draft.wrong("CannotRequeue",
                       fmt::format("spec.drainPolicy.onTimeout: Slurm {} cannot requeue jobs through its REST API (26.05 and "
                                   "later can), so workers that are to be deleted wait for their jobs",
                                   view.in.snapshot->capabilities.release),
                       "Requeue");
  }
  if (!draft.wish_now(id)) return;
  if (!draft.has_room(2)) return draft.wake(kPassFull);
  std::vector<std::string> ids;
  for (const slurm::DrainTimedOut::OneJob& job : evidence.jobs()) ids.push_back(job.full_id);
  plan::Lane& lane = draft.lane("end jobs of " + worker.node);
  draft.step(lane, view.event_step("Warning", cancels ? "CancellingJobs" : "RequeueingJobs", cancels ? "Cancel" : "Requeue",
                                   fmt::format("Node {} is {}: {} jobs {}", worker.node, evidence.detail(),
                                               cancels ? "cancelling" : "requeueing", fmt::join(ids, ", "))));
  lane.then();
  draft.step(lane, id, evidence.detail(), slurm::end_jobs(evidence));
}

}  // namespace

void end_overdue_jobs(const View& view, const Fates& fates, Draft& draft) {
  const auto& policy = view.in.nodeset.spec.drain_policy;
  if (!policy || !view.slurm_known() || view.stops()) return;
  for (const Worker& worker : fates.workers) {
    const std::optional<core::Duration> left = time_left(view, worker);
    // A worker is not deleted for an update before the API server has confirmed that it would create the worker's successor.
    const bool updates = worker.updates() && !fates.rollout.unchecked;
    const bool leaves = worker.fate.kind == Fate::Kind::kScaleIn || updates;
    if (!left || !leaves || worker.life != Life::kLive || worker.work.jobs == 0) continue;
    if (left->count() > 0) {
      draft.wake_after(*left, "the timeout of a drain is over");
    } else if (policy->on_timeout == api::OnDrainTimeout::kWait) {
      tell_overdue(view, worker, draft);
    } else if (worker.evidence.timed_out) {
      end_jobs_of(view, worker, draft);
    } else if (!view.slurm_fresh()) {
      draft.wake(kTimeOver);
    }
  }
}

std::string held_text(const ScaleIn& scale_in) {
  const std::size_t count = scale_in.held.size();
  if (count == 0) return {};
  const bool ends = scale_in.held_until > 0 && scale_in.held_until < INT64_MAX;
  const std::string last =
      ends && count > 1 ? ", for the last until " + minute_text(core::WallTime{core::Duration{scale_in.held_until}}) : "";
  return fmt::format("waiting for {} worker{}{}: {}", count, count == 1 ? "" : "s", last, some_of(scale_in.held));
}

std::string what_holds(const View& view, const Worker& worker) {
  const slurm::Work& work = worker.work;
  if (work.jobs > 0) {
    std::string when;
    if (work.running) {
      when = work.deadline    ? " until " + minute_text(*work.deadline)
             : work.jobs == 1 ? " without a time limit"
                              : ", at least one without a time limit";
    } else if (work.suspended) {
      when = work.jobs == 1 ? ", which is suspended" : ", which are suspended";
    }
    return fmt::format("{} runs {}{}{}", worker.node, jobs_text(work.jobs), when, policy_text(view, worker));
  }
  if (worker.busy()) return worker.node + " is completing a job";
  if (reserved(*worker.record)) return worker.node + std::string(kReservedText);
  return worker.node + " is being drained";
}

}  // namespace op::nodeset
