#include "bridge/gangs/observe.hpp"

#include <algorithm>
#include <ranges>

#include "bridge/common/groups.hpp"
#include "bridge/common/states.hpp"

namespace bridge::gangs {
namespace {

bool waits(const Member& member) {
  return phase_of(*member.pod) == PodPhase::kWaiting && !member.pod->meta.terminating();
}

bool is_placed(const Pod& pod) {
  const PodPhase phase = phase_of(pod);
  return phase == PodPhase::kPlaced || phase == PodPhase::kBound;
}

}  // namespace

std::shared_ptr<const Observed> GangsController::observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                               const run::Observation& context) {
  auto out = std::make_shared<Observed>();
  out->context = context;
  observer_.fill(*out, key, recorder);
  if (out->installation.empty()) return out;
  for (const PodPtr& pod : pods_of(key)) {
    out->members.emplace_back();
    out->members.back().pod = pod;
    out->members.back().managed = observer_.manages(*pod);
  }
  if (out->snapshot != nullptr) {
    observe_jobs(context, *out);
    assign(*out);
  }
  if (const auto first = std::ranges::find_if(out->members, waits); first != out->members.end())
    observer_.fill_fit(*out, first->pod);
  remember(context, *out);
  if (out->snapshot == nullptr) return out;
  observe_ends(context, *out);
  issue_unneeded(context, *out);
  observe_leftovers(*out);
  return out;
}

/// Returns the pods of the group, and the pods that were placed for jobs of the group, even if users have since changed the
/// labels of these pods. All pods are in the namespace of the group.
Pods GangsController::pods_of(const run::Key& key) const {
  Pods out = observer_.caches.pods.by_index(kIndexGroup, key.str());
  for (const JobTable::Row* row : observer_.table.of(key)) {
    for (const PodPtr& pod : observer_.caches.pods.by_index(kIndexJob, std::to_string(row->job->id))) {
      if (row->is_for(*pod)) out.push_back(pod);
    }
  }
  // A pod that was placed for a job of another group stays in that group. A pod that has a job of its own stays in no group.
  std::erase_if(out, [&](const PodPtr& pod) {
    if (observer_.table.has_own_job(*pod)) return true;
    const run::Key* placed = observer_.table.placed_group_of(*pod);
    return placed != nullptr && *placed != key;
  });
  std::ranges::sort(out, [](const PodPtr& a, const PodPtr& b) {
    return comes_before(a->meta, b->meta) || (!comes_before(b->meta, a->meta) && a < b);
  });
  const auto same = std::ranges::unique(out);
  out.erase(same.begin(), same.end());
  return out;
}

void GangsController::observe_jobs(const run::Observation& context, Observed& out) const {
  for (const JobTable::Row* row : observer_.table.of(out.key)) {
    if (row->mark.instance != out.installation) continue;
    GangJob job;
    static_cast<NamedJob&>(job) = observer_.named(context.observing, out, *row);
    job.uids = row->uids;
    const Submission submission = submission_of(row->mark);
    int& attempts = out.attempts[submission.root_uid];
    attempts = std::max(attempts, submission.attempt);
    out.jobs.push_back(std::move(job));
  }
}

void GangsController::assign(Observed& out) const {
  const auto in = [](Member& member, GangJob& job, std::vector<const Member*>& list) {
    member.job = job.job;
    list.push_back(&member);
  };
  for (Member& member : out.members) {
    const std::vector<JobId> placed = placed_for(*member.pod);
    const auto named = [&](const GangJob& job) { return std::ranges::find(placed, id_of(*job.job)) != placed.end(); };
    if (const auto job = std::ranges::find_if(out.jobs, named); job != out.jobs.end())
      in(member, *job, phase_of(*member.pod) == PodPhase::kEnded ? job->ended : job->placed);
  }
  // Placed pods are assigned first, because they show which jobs have started. A pod that waits gets a job that has started, if
  // there is one.
  const auto lists = [](const Member& member) {
    return [&member](const GangJob& job) { return job.uids.contains(member.pod->meta.uid); };
  };
  for (Member& member : out.members | std::views::filter(waits)) {
    GangJob* chosen = nullptr;
    for (GangJob& job : out.jobs | std::views::filter(lists(member))) {
      if (job.ended_already()) continue;
      if (chosen == nullptr || (job.started() && !chosen->started())) chosen = &job;
    }
    if (chosen != nullptr) {
      in(member, *chosen, chosen->waiting);
      continue;
    }
    const auto youngest = std::ranges::find_if(out.jobs | std::views::reverse, lists(member));
    if (youngest != out.jobs.rend() && !gets_another_job(*member.pod, *youngest->job)) member.job = youngest->job;
  }
}

void GangsController::observe_ends(const run::Observation& context, Observed& out) const {
  for (Member& member : out.members) {
    const Pod& pod = *member.pod;
    if (!waits(member) && !is_placed(pod)) continue;
    if (member.job == nullptr) {
      // The job of a pod that is not managed might be in another Slurm cluster, which another bridge serves.
      if (is_placed(pod) && member.managed)
        member.over = PodOver::job_gone(context.observing, *out.snapshot, out.installation, pod, observer_.table);
      continue;
    }
    const JobTable::Row& row = *observer_.table.row(member.job->id);
    member.over = PodOver::job_ended(context.observing, *out.snapshot, out.installation, pod, row);
    if (!member.over)
      member.over = PodOver::job_ends_soon(context.observing, *out.snapshot, out.installation, pod, row, out.slurm_now);
  }
  for (Member& member : out.members) {
    if (member.over || !member.unbound_since || !(member.job || member.managed)) continue;
    member.over = PodOver::not_bound(context.observing, *member.pod, *member.unbound_since, out.settings->bind_limit);
  }
}

void GangsController::issue_unneeded(const run::Observation& context, Observed& out) const {
  const auto pods_of = [](const std::vector<const Member*>& members) {
    Pods pods;
    for (const Member* member : members) pods.push_back(member->pod);
    return pods;
  };
  const core::Duration limit = out.settings->silence_limit;
  for (GangJob& job : out.jobs) {
    if (job.ended_already() || !job.own) continue;
    Pods pods = pods_of(job.placed);
    std::ranges::copy(pods_of(job.ended), std::back_inserter(pods));
    if (const auto look = out.context.facts.find(job.fact()); look != out.context.facts.end())
      job.unused = Unneeded::no_pod_runs(context.observing, *job.own, id_of(*job.job), pods, look->second);
    for (const Member* member : job.ended) {
      // A pod that took the place of another pod does not break the job, which continues without the pod.
      if (!job.broken && job.uids.contains(member->pod->meta.uid))
        job.broken = Unneeded::pod_not_bound(context.observing, *job.own, *member->pod);
    }
    for (Member& member : out.members) {
      const bool silent = member.silent_since && context.mono - *member.silent_since >= limit;
      if (job.broken || !silent || member.job != job.job) continue;
      const auto look = out.context.facts.find(node_fact(member.pod->node_name));
      member.asks_for_node = look == out.context.facts.end();
      if (member.asks_for_node) continue;
      job.broken = Unneeded::node_silent(context.observing, *job.own, *member.pod, *member.silent_since, limit, look->second);
      job.broken_by = member.pod;
    }
  }
}

void GangsController::observe_leftovers(Observed& out) {
  const bool any_waits = std::ranges::any_of(out.members, waits);
  for (GangJob& job : out.jobs) {
    if (!any_waits || phase_of(*job.job) != JobPhase::kRuns) continue;
    for (const std::string& node : nodes_of(*job.job)) job.leftovers[node] = observer_.leftovers(out, node, *job.job);
  }
}

void GangsController::remember(const run::Observation& context, Observed& out) {
  Since& since = memory_[out.key];
  since.begin(context.mono);
  const bool answered = out.snapshot != nullptr && out.snapshot->complete();
  for (Member& member : out.members) {
    const Pod& pod = *member.pod;
    const PodPhase phase = phase_of(pod);
    const std::string& uid = pod.meta.uid;
    member.unbound_since = since("unbound " + uid, phase == PodPhase::kPlaced);
    member.over_since = since("over " + uid, phase == PodPhase::kBound && is_told_to_end(pod));
    if (const std::string what = ending(pod); !what.empty()) member.ending_since = since(what, true);
    member.on_unready_node = phase == PodPhase::kBound && observer_.on_unready_node(pod);
    member.silent_since = since("silent " + uid, phase == PodPhase::kBound && observer_.on_silent_node(pod));
    member.unanswered_since = since("unanswered " + uid, phase == PodPhase::kWaiting && !answered);
  }
  const auto waiting = static_cast<std::size_t>(std::ranges::count_if(out.members, waits));
  for (const GangJob& job : out.jobs) {
    const std::string number = std::to_string(job.job->id);
    const bool is_short = !job.ended_already() && !job.started() && !job.waiting.empty() && waiting < job.uids.size();
    if (is_short) out.short_since = since("short " + number, true);
  }
  if (!out.jobs.empty() && is_refused(*out.jobs.back().job))
    out.refused_since = since("refused " + std::to_string(out.jobs.back().job->id), true);
  if (since.empty()) memory_.erase(out.key);
}

}  // namespace bridge::gangs
