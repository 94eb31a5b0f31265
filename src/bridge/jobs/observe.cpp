#include "bridge/jobs/observe.hpp"

#include <algorithm>

#include "bridge/common/names.hpp"
#include "bridge/jobs/states.hpp"

namespace bridge::jobs {

std::shared_ptr<const Observed> JobsController::observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                              const run::Observation& context) {
  auto out = std::make_shared<Observed>();
  out->context = context;
  out->key = key;
  out->settings = settings_;
  const auto cluster = recorder.metadata(kube::resources::kNamespace, {"", "kube-system"});
  if (cluster.record) out->installation = cluster.record->meta.uid;
  if (out->installation.empty()) return out;
  out->managed = std::ranges::find(settings_->managed_namespaces, key.ns) != settings_->managed_namespaces.end();
  out->pod = caches_.pods.find(key);
  out->snapshot = wiring_.snapshot(settings_->cluster);
  table_.read(out->snapshot);
  if (hosts_ == nullptr) hosts_ = std::make_shared<const Hosts>(hosts_of(caches_.nodes.all()));
  out->hosts = hosts_;
  observe_jobs(context, *out);
  if (out->pod) {
    observe_leftovers(*out);
    remember(context, *out);
    observe_end(context, *out);
  } else {
    memory_.erase(key);
  }
  return out;
}

void JobsController::observe_jobs(const run::Observation& context, Observed& out) const {
  for (const JobTable::Row* row : table_.of(out.key)) {
    if (row->mark.instance != out.installation) continue;
    NamedJob named{row->job, row->mark, {}, {}, false};
    named.own = slurm::OwnJob::of(context.observing, *out.snapshot, settings_->cluster, slurm::Owner::kBridge, out.installation,
                                  row->job->id);
    out.jobs.push_back(std::move(named));
  }
  choose_job(out);
  issue_unneeded(context, out);
}

void JobsController::choose_job(Observed& out) const {
  if (!out.pod) return;
  const NamedJob* chosen = nullptr;
  const std::int64_t placed_for = job_of(out.pod->meta);
  for (const NamedJob& named : out.jobs) {
    if (named.mark.key != out.pod->meta.uid) continue;
    if (placed_for != 0) {
      if (named.job->id == placed_for) chosen = &named;
    } else if (chosen == nullptr || phase_of(*chosen->job) == JobPhase::kEnded) {
      chosen = &named;
    }
  }
  if (chosen == nullptr) return;
  out.job = chosen->job;
  out.own = chosen->own;
}

void JobsController::issue_unneeded(const run::Observation& context, Observed& out) const {
  const auto look = out.context.facts.find("pod");
  for (NamedJob& named : out.jobs) {
    if (!named.own || phase_of(*named.job) == JobPhase::kEnded) continue;
    if (out.pod && named.mark.key == out.pod->meta.uid) {
      named.unneeded = Unneeded::pod_ended(context.observing, *named.own, *out.pod);
      if (!named.unneeded) named.unneeded = Unneeded::pod_freed(context.observing, *named.own, *out.pod);
      if (!named.unneeded && out.job) named.unneeded = Unneeded::second(context.observing, *named.own, out.job->id);
    } else {
      named.asks_for_pod = true;
      if (look != out.context.facts.end())
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
    const JobTable::Row* row = table_.row(job_of(pod->meta));
    const bool holds = row != nullptr && row->mark.key == pod->meta.uid && row->job->holds_nodes();
    if (!holds) out.leftovers.push_back(pod->meta.key().str());
  }
}

void JobsController::observe_end(const run::Observation& context, Observed& out) const {
  const kube::SchedulingPodRecord& pod = *out.pod;
  const PodPhase phase = phase_of(pod);
  if (phase == PodPhase::kEnded || phase == PodPhase::kForeign || out.snapshot == nullptr) return;
  if (out.job) {
    const slurm::JobMark mine{slurm::Owner::kBridge, out.installation, pod.meta.uid};
    out.over = PodOver::job_ended(context.observing, *out.snapshot, pod, mine, *out.job);
  } else if (phase != PodPhase::kWaiting) {
    out.over = PodOver::job_gone(context.observing, *out.snapshot, pod, table_.youngest(out.installation));
  }
  if (out.over || !out.unbound_since || !out.job) return;
  out.over = PodOver::not_bound(context.observing, pod, *out.unbound_since, settings_->bind_limit,
                                "job " + std::to_string(out.job->id));
}

void JobsController::remember(const run::Observation& context, Observed& out) {
  Memory& memory = memory_[out.key];
  if (memory.uid != out.pod->meta.uid) memory = {out.pod->meta.uid, {}, {}};
  const PodPhase phase = phase_of(*out.pod);
  const bool holds = out.job && phase_of(*out.job) == JobPhase::kRuns;
  const bool unbound = phase == PodPhase::kPlaced || (phase == PodPhase::kWaiting && out.leftovers.empty());
  if (!holds || !unbound) {
    memory.unbound_since.reset();
  } else if (!memory.unbound_since) {
    memory.unbound_since = context.mono;
  }
  const bool over = phase == PodPhase::kBound && out.pod->condition(kConditionEnded) != nullptr;
  if (!over) {
    memory.over_since.reset();
  } else if (!memory.over_since) {
    memory.over_since = context.mono;
  }
  out.unbound_since = memory.unbound_since;
  out.over_since = memory.over_since;
  if (!memory.unbound_since && !memory.over_since) memory_.erase(out.key);
}

}  // namespace bridge::jobs
