#include "bridge/jobs/observe.hpp"

#include <algorithm>

#include "bridge/common/names.hpp"
#include "bridge/jobs/states.hpp"

namespace bridge::jobs {
namespace {

/// Reports whether Unneeded::pod_ended or Unneeded::pod_freed holds for the jobs of the pod.
bool needs_no_job(const kube::SchedulingPodRecord& pod) {
  const PodPhase phase = phase_of(pod);
  return phase == PodPhase::kEnded || phase == PodPhase::kForeign || (phase == PodPhase::kWaiting && pod.meta.terminating());
}

std::shared_ptr<const Settings> with_defaults(std::shared_ptr<const Settings> settings, const kube::StringMap& annotations) {
  const auto first = annotations.lower_bound(kAnnotationPrefix);
  if (first == annotations.end() || !first->first.starts_with(kAnnotationPrefix)) return settings;
  auto out = std::make_shared<Settings>(*settings);
  out->defaults = annotations;
  return out;
}

/// By its namespace, or as admission has noted on the pod.
bool is_managed(const Settings& settings, const std::string& ns, const kube::ObjectMeta* pod) {
  if (std::ranges::find(settings.managed_namespaces, ns) != settings.managed_namespaces.end()) return true;
  return pod != nullptr && !settings.scheduler_name.empty() && pod->annotation(kAnnotationManagedBy) == settings.cluster;
}

}  // namespace

std::shared_ptr<const Observed> JobsController::observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                              const run::Observation& context) {
  auto out = std::make_shared<Observed>();
  out->context = context;
  out->key = key;
  out->settings = settings_;
  const auto cluster = recorder.metadata(kube::resources::kNamespace, {"", "kube-system"});
  if (cluster.record) out->installation = cluster.record->meta.uid;
  if (out->installation.empty()) return out;
  installation_ = out->installation;
  const auto space = recorder.metadata(kube::resources::kNamespace, {"", key.ns});
  if (space.presence == kube::Presence::kUnknown) {
    out->installation.clear();
    return out;
  }
  if (space.record) out->settings = with_defaults(settings_, space.record->meta.annotations);
  out->pod = caches_.pods.find(key);
  out->managed = is_managed(*settings_, key.ns, out->pod ? &out->pod->meta : nullptr);
  out->snapshot = wiring_.snapshot(settings_->cluster);
  table_.read(out->snapshot);
  out->life = table_.life();
  if (hosts_ == nullptr) hosts_ = std::make_shared<const Hosts>(hosts_of(caches_.nodes.all()));
  out->hosts = hosts_;
  if (out->snapshot != nullptr) observe_jobs(context, *out);
  if (out->pod) {
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
  for (const JobTable::Row* row : table_.of(out.key)) {
    if (row->mark.instance != out.installation) continue;
    NamedJob named{row->job, row->mark, {}, row->wish, {}, false, false};
    named.own = slurm::OwnJob::of(context.observing, *out.snapshot, settings_->cluster, slurm::Owner::kBridge, out.installation,
                                  row->job->id);
    out.jobs.push_back(std::move(named));
  }
  choose_job(context, out);
  issue_unneeded(context, out);
}

void JobsController::choose_job(const run::Observation& context, Observed& out) const {
  if (!out.pod) return;
  const NamedJob* chosen = nullptr;
  const std::vector<JobId> placed = placed_for(*out.pod);
  for (const NamedJob& named : out.jobs) {
    const Submission submission = submission_of(named.mark);
    if (submission.pod_uid != out.pod->meta.uid) continue;
    out.attempts = std::max(out.attempts, submission.attempt);
    if (!placed.empty()) {
      if (std::ranges::find(placed, named.job->id, &JobId::number) != placed.end()) chosen = &named;
    } else if (chosen == nullptr || phase_of(*chosen->job) == JobPhase::kEnded) {
      chosen = &named;
    }
  }
  if (chosen == nullptr) return;
  out.job = chosen->job;
  out.own = chosen->own;
  out.wish = chosen->wish;
  if (out.own) out.replaceable = Unneeded::replaceable(context.observing, *out.own, *out.pod);
}

void JobsController::issue_unneeded(const run::Observation& context, Observed& out) const {
  const auto look = out.context.facts.find("pod");
  for (NamedJob& named : out.jobs) {
    if (phase_of(*named.job) == JobPhase::kEnded) continue;
    const bool of_pod = out.pod && submission_of(named.mark).pod_uid == out.pod->meta.uid;
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

void JobsController::observe_leftovers(Observed& out) const {
  if (!out.job || phase_of(*out.pod) != PodPhase::kWaiting || phase_of(*out.job) != JobPhase::kRuns) return;
  const auto host = out.hosts->find(node_of(*out.job));
  if (host == out.hosts->end()) return;
  for (const auto& pod : caches_.pods.by_index(slinky::kIndexNode, host->second->meta.name)) {
    if (phase_of(*pod) != PodPhase::kBound || pod->meta.uid == out.pod->meta.uid) continue;
    const auto holds = [&](const JobId& job) {
      const JobTable::Row* row = table_.row(job.number);
      return row != nullptr && submission_of(row->mark).pod_uid == pod->meta.uid && row->job->holds_nodes();
    };
    if (std::ranges::none_of(placed_for(*pod), holds)) out.leftovers.push_back(pod->meta.key().str());
  }
}

bool JobsController::on_silent_node(const kube::SchedulingPodRecord& pod) const {
  const auto node = caches_.nodes.find({"", pod.node_name});
  return node != nullptr && !node->ready;
}

/// The kubelet of a node that is not ready says nothing about its pods. After a while, nobody waits for it.
void JobsController::observe_silence(const run::Observation& context, Observed& out) const {
  if (!out.job || !out.own || !out.silent_since || context.mono - *out.silent_since < settings_->silence_limit) return;
  const auto named = std::ranges::find(out.jobs, out.job, &NamedJob::job);
  if (named == out.jobs.end() || named->unneeded || phase_of(*out.job) == JobPhase::kEnded) return;
  const auto look = out.context.facts.find("node");
  out.asks_for_node = look == out.context.facts.end();
  if (out.asks_for_node) return;
  named->unneeded =
      Unneeded::node_silent(context.observing, *out.own, *out.pod, *out.silent_since, settings_->silence_limit, look->second);
}

void JobsController::observe_end(const run::Observation& context, Observed& out) const {
  const kube::SchedulingPodRecord& pod = *out.pod;
  const PodPhase phase = phase_of(pod);
  if (phase == PodPhase::kEnded || phase == PodPhase::kForeign || out.snapshot == nullptr) return;
  if (out.job) {
    out.over = PodOver::job_ended(context.observing, *out.snapshot, out.installation, pod, *out.job);
  } else if (phase != PodPhase::kWaiting && out.managed) {
    // Elsewhere, the job may be one of another Slurm, which another bridge knows.
    out.over = PodOver::job_gone(context.observing, *out.snapshot, out.installation, pod, table_);
  }
  if (out.over || !out.job) return;
  out.over = PodOver::job_ends_soon(context.observing, *out.snapshot, out.installation, pod, *out.job, out.context.now);
  if (out.over || !out.unbound_since) return;
  out.over = PodOver::not_bound(context.observing, pod, *out.unbound_since, settings_->bind_limit,
                                "job " + std::to_string(out.job->id));
}

void JobsController::remember(const run::Observation& context, Observed& out) {
  Memory& memory = memory_[out.key];
  if (memory.uid != out.pod->meta.uid) {
    memory = {};
    memory.uid = out.pod->meta.uid;
  }
  const auto last = [&](std::optional<core::MonoTime>& since, bool holds) {
    if (!holds) {
      since.reset();
    } else if (!since) {
      since = context.mono;
    }
    return since;
  };
  const PodPhase phase = phase_of(*out.pod);
  const bool refused = phase == PodPhase::kWaiting && out.job && is_refused(*out.job);
  if (refused && memory.refused != out.job->id) {
    memory.refused = out.job->id;
    memory.refused_since.reset();
  }
  out.unbound_since = last(memory.unbound_since, phase == PodPhase::kPlaced);
  out.over_since = last(memory.over_since, phase == PodPhase::kBound && is_told_to_end(*out.pod));
  out.refused_since = last(memory.refused_since, refused);
  out.silent_since = last(memory.silent_since, phase == PodPhase::kBound && on_silent_node(*out.pod));
  const bool answered = out.snapshot != nullptr && out.snapshot->complete();
  out.unanswered_since = last(memory.unanswered_since, phase == PodPhase::kWaiting && !answered);
  const auto all = {memory.unbound_since, memory.over_since, memory.refused_since, memory.silent_since,
                    memory.unanswered_since};
  if (std::ranges::none_of(all, [](const auto& since) { return since.has_value(); })) memory_.erase(out.key);
}

}  // namespace bridge::jobs
