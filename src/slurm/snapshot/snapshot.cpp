#include "slurm/snapshot/snapshot.hpp"

#include <algorithm>

namespace slurm {
namespace {

Work work_of(const Job& job) {
  Work out;
  out.jobs = 1;
  out.suspended = job.state == "SUSPENDED";
  out.running = job.state == "RUNNING";
  if (out.running) out.deadline = job.end;
  return out;
}

Work both(const Work& a, const Work& b) {
  Work out{a.jobs + b.jobs, a.running || b.running, a.suspended || b.suspended, {}};
  if (!a.running || !b.running) {
    out.deadline = a.running ? a.deadline : b.deadline;
  } else if (a.deadline && b.deadline) {
    out.deadline = std::max(*a.deadline, *b.deadline);
  }
  return out;
}

}  // namespace

/// A failure is reported once this many rounds in a row have failed. After a single failure, the next round usually succeeds.
constexpr int kTold = 3;

bool Snapshot::silent() const {
  return !complete() && from_server && error_code == core::ErrorCode::kUnavailable && failures >= kTold;
}

bool Snapshot::unreadable() const {
  return !complete() && error_code == core::ErrorCode::kInternal && failures >= kTold;
}

core::Duration Snapshot::good_for() const {
  // A snapshot is fresh for twice the round's duration plus 1 s for a pass. It must still be fresh when its round ends, even if
  // the round took longer than kFreshAtMost.
  return std::clamp(2 * cost + core::Duration{1000}, kFresh, std::max(kFreshAtMost, cost + kFresh));
}

bool Snapshot::fresh(core::MonoTime now) const {
  return complete() && now - requested_at <= good_for();
}

std::optional<core::WallTime> Snapshot::time_at(core::MonoTime now) const {
  if (!clock) return std::nullopt;
  return *clock + (now - clock_at);
}

const Node* Snapshot::node(std::string_view name) const {
  const auto it = nodes.find(name);
  return it == nodes.end() ? nullptr : it->second.get();
}

std::vector<std::shared_ptr<const Job>> Snapshot::jobs_on(std::string_view node_name) const {
  const auto all = index();
  std::vector<std::shared_ptr<const Job>> out;
  if (const auto it = all->by_node.find(node_name); it != all->by_node.end()) out = it->second.jobs;
  out.insert(out.end(), all->of_any.jobs.begin(), all->of_any.jobs.end());
  return out;
}

Work Snapshot::work_on(std::string_view node_name) const {
  const auto all = index();
  const auto it = all->by_node.find(node_name);
  const Work held = it == all->by_node.end() ? Work{} : it->second.work;
  // Jobs are read after nodes, so a job can hold a node that registered in between and is not in the snapshot. Jobs with
  // unreadable nodes count only for nodes of the snapshot.
  return node(node_name) == nullptr ? held : both(held, all->of_any.work);
}

bool Snapshot::job_names(std::string_view node) const {
  const auto all = index();
  return all->by_node.contains(node) || !all->of_any.jobs.empty() || all->required.has(node);
}

std::shared_ptr<const JobIndex> JobIndex::of(const SharedMap<std::int64_t, std::shared_ptr<const Job>>& jobs) {
  auto out = std::make_shared<JobIndex>();
  const auto hold = [](Held& held, const std::shared_ptr<const Job>& job) {
    if (!held.jobs.empty() && held.jobs.back() == job) return;
    held.jobs.push_back(job);
    held.work = both(held.work, work_of(*job));
  };
  for (const auto& [id, job] : jobs) {
    if (job->state == "PENDING" && !job->required_nodes.empty()) out->required.add(job->required_nodes);
    if (!job->holds_nodes()) continue;
    if (job->nodes_unknown) hold(out->of_any, job);
    for (const std::string& name : job->nodes) hold(out->by_node[name], job);
  }
  return out;
}

}  // namespace slurm
