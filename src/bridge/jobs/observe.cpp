#include "bridge/jobs/observe.hpp"

#include <algorithm>

#include "bridge/common/groups.hpp"
#include "bridge/common/names.hpp"
#include "bridge/common/states.hpp"

namespace bridge::jobs {
namespace {

/// Reports whether Unneeded::pod_ended or Unneeded::pod_freed holds for the jobs of the pod.
bool needs_no_job(const kube::SchedulingPodRecord& pod) {
  const PodPhase phase = phase_of(pod);
  return phase == PodPhase::kEnded || phase == PodPhase::kForeign || (phase == PodPhase::kWaiting && pod.meta.terminating());
}

}  // namespace

std::string JobsController::share(const kube::Key& key) const {
  const PodPtr pod = observer_.caches.pods.find(key);
  const bool ends = pod != nullptr && phase_of(*pod) == PodPhase::kBound && !observer_.table.holds(*pod);
  return ends ? "" : observer_.settings->cluster;
}

bool JobsController::in_group(const Pod& pod) const {
  if (observer_.table.has_own_job(pod)) return false;
  return group_of(pod.meta) || observer_.table.placed_group_of(pod) != nullptr;
}

std::shared_ptr<const Observed> JobsController::observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                              const run::Observation& context) {
  auto out = std::make_shared<Observed>();
  out->context = context;
  observer_.fill(*out, key, recorder);
  if (out->installation.empty()) return out;
  out->pod = observer_.caches.pods.find(key);
  if (out->pod && in_group(*out->pod)) out->pod = nullptr;
  if (out->snapshot != nullptr) observe_jobs(context, *out);
  if (out->pod) {
    out->managed = observer_.manages(*out->pod);
    observe_fit(*out);
    observe_leftovers(*out);
    remember(context, *out);
    observe_silence(context, *out);
    observe_end(context, *out);
  } else {
    memory_.erase(key);
  }
  return out;
}

void JobsController::observe_jobs(const run::Observation& context, Observed& out) const {
  for (const JobTable::Row* row : observer_.table.of(out.key)) {
    if (row->mark.instance == out.installation)
      out.jobs.push_back({observer_.named(context.observing, out, *row), {}, false, false});
  }
  choose_job(context, out);
  issue_unneeded(context, out);
}

void JobsController::choose_job(const run::Observation& context, Observed& out) const {
  if (!out.pod) return;
  const PodJob* chosen = nullptr;
  const std::vector<JobId> placed = placed_for(*out.pod);
  for (const PodJob& named : out.jobs) {
    const Submission submission = submission_of(named.mark);
    if (submission.root_uid != out.pod->meta.uid) continue;
    out.attempts = std::max(out.attempts, submission.attempt);
    if (!placed.empty()) {
      if (std::ranges::find(placed, named.job->id, &JobId::number) != placed.end()) chosen = &named;
    } else if (chosen == nullptr || phase_of(*chosen->job) == JobPhase::kEnded) {
      chosen = &named;
    }
  }
  if (chosen == nullptr) return;
  out.job = chosen->job;
  out.current = *chosen;
  if (chosen->own) out.replaceable = Unneeded::replaceable(context.observing, *chosen->own, *out.pod);
}

void JobsController::issue_unneeded(const run::Observation& context, Observed& out) const {
  const auto look = out.context.facts.find("pod");
  for (PodJob& named : out.jobs) {
    if (phase_of(*named.job) == JobPhase::kEnded) continue;
    const bool of_pod = out.pod && submission_of(named.mark).root_uid == out.pod->meta.uid;
    named.asks_for_pod = !of_pod;
    if (!named.own) {
      named.seems_unneeded = !of_pod || needs_no_job(*out.pod) || named.job != out.job;
    } else if (of_pod) {
      named.unneeded = Unneeded::pod_ended(context.observing, *named.own, *out.pod);
      if (!named.unneeded) named.unneeded = Unneeded::pod_freed(context.observing, *named.own, *out.pod);
      if (!named.unneeded && out.job) named.unneeded = Unneeded::second(context.observing, *named.own, out.job->id);
    } else if (look != out.context.facts.end()) {
      named.unneeded = Unneeded::pod_gone(context.observing, *named.own, look->second);
    }
  }
}

/// Fills the fit of the pod, unless the pod's job already holds nodes. Such a job is not moved to other nodes.
void JobsController::observe_fit(Observed& out) {
  const bool holds = out.job && phase_of(*out.job) != JobPhase::kWaits && phase_of(*out.job) != JobPhase::kEnded;
  if (phase_of(*out.pod) == PodPhase::kWaiting && (out.managed || out.job) && !holds) observer_.fill_fit(out, out.pod);
}

void JobsController::observe_leftovers(Observed& out) {
  if (!out.job || phase_of(*out.pod) != PodPhase::kWaiting || phase_of(*out.job) != JobPhase::kRuns) return;
  for (const std::string& node : nodes_of(*out.job)) out.leftovers = observer_.leftovers(out, node, *out.job);
}

/// Decides whether to release the job of a bound pod whose node has not been ready for Settings::silence_limit. The kubelet of
/// such a node does not report when the pod ends.
void JobsController::observe_silence(const run::Observation& context, Observed& out) const {
  const core::Duration limit = out.settings->silence_limit;
  if (!out.current || !out.current->own || !out.silent_since || context.mono - *out.silent_since < limit) return;
  const auto named = std::ranges::find(out.jobs, out.job, &PodJob::job);
  if (named == out.jobs.end() || named->unneeded || phase_of(*out.job) == JobPhase::kEnded) return;
  const auto look = out.context.facts.find(node_fact(out.pod->node_name));
  out.asks_for_node = look == out.context.facts.end();
  if (out.asks_for_node) return;
  named->unneeded =
      Unneeded::node_silent(context.observing, *out.current->own, *out.pod, *out.silent_since, limit, look->second);
}

void JobsController::observe_end(const run::Observation& context, Observed& out) const {
  const kube::SchedulingPodRecord& pod = *out.pod;
  const PodPhase phase = phase_of(pod);
  if (phase == PodPhase::kEnded || phase == PodPhase::kForeign || out.snapshot == nullptr) return;
  if (out.job) {
    const JobTable::Row& row = *observer_.table.row(out.job->id);
    out.over = PodOver::job_ended(context.observing, *out.snapshot, out.installation, pod, row);
    if (!out.over)
      out.over = PodOver::job_ends_soon(context.observing, *out.snapshot, out.installation, pod, row, out.slurm_now);
  } else if (phase != PodPhase::kWaiting && out.managed) {
    // The job of a pod that is not managed might be in another Slurm cluster, which another bridge serves.
    out.over = PodOver::job_gone(context.observing, *out.snapshot, out.installation, pod, observer_.table);
  }
  if (out.over || !out.unbound_since || !(out.job || out.managed)) return;
  out.over = PodOver::not_bound(context.observing, pod, *out.unbound_since, out.settings->bind_limit);
}

void JobsController::remember(const run::Observation& context, Observed& out) {
  Since& since = memory_[out.key];
  since.begin(context.mono);
  const PodPhase phase = phase_of(*out.pod);
  const std::string& uid = out.pod->meta.uid;
  const bool refused = phase == PodPhase::kWaiting && out.job && is_refused(*out.job);
  out.unbound_since = since("unbound " + uid, phase == PodPhase::kPlaced);
  out.over_since = since("over " + uid, phase == PodPhase::kBound && is_told_to_end(*out.pod));
  if (const std::string what = ending(*out.pod); !what.empty()) out.ending_since = since(what, true);
  out.on_unready_node = phase == PodPhase::kBound && observer_.on_unready_node(*out.pod);
  out.silent_since = since("silent " + uid, phase == PodPhase::kBound && observer_.on_silent_node(*out.pod));
  const bool answered = out.snapshot != nullptr && out.snapshot->complete();
  out.unanswered_since = since("unanswered " + uid, phase == PodPhase::kWaiting && !answered);
  if (refused) out.refused_since = since("refused " + std::to_string(out.job->id), true);
  if (since.empty()) memory_.erase(out.key);
}

}  // namespace bridge::jobs
