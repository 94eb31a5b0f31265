#include "slurm/snapshot/snapshot.hpp"

#include <algorithm>

#include "core/hostlist.hpp"

namespace slurm {

bool Snapshot::unreadable() const {
  // One bad answer is an accident, of which the next round says nothing any more.
  constexpr int kTold = 3;
  return !complete() && error_code == core::ErrorCode::kInternal && failures >= kTold;
}

core::Duration Snapshot::good_for() const {
  // As long as it took, once more, and time for a pass. One that took longer than the most is not old when it arrives.
  return std::clamp(2 * cost + core::Duration{1000}, kFresh, std::max(kFreshAtMost, cost + kFresh));
}

bool Snapshot::fresh(core::MonoTime now) const {
  return complete() && now - requested_at <= good_for();
}

const Node* Snapshot::node(std::string_view name) const {
  const auto it = nodes.find(name);
  return it == nodes.end() ? nullptr : it->second.get();
}

std::vector<std::shared_ptr<const Job>> Snapshot::jobs_on(std::string_view node_name) const {
  std::vector<std::shared_ptr<const Job>> out;
  if (holders) {
    if (const auto it = holders->find(node_name); it != holders->end()) out = it->second;
    out.insert(out.end(), holders_of_any.begin(), holders_of_any.end());
    return out;
  }
  for (const auto& [id, job] : jobs) {
    if (job->holds(node_name)) out.push_back(job);
  }
  return out;
}

bool Snapshot::job_names(std::string_view node) const {
  return std::ranges::any_of(jobs, [&](const auto& entry) {
    const Job& job = *entry.second;
    if (job.holds(node)) return true;
    return job.state == "PENDING" && core::hostlist_names(job.required_nodes, node);
  });
}

void Snapshot::index_jobs() {
  std::map<std::string, std::vector<std::shared_ptr<const Job>>, std::less<>> index;
  holders_of_any.clear();
  for (const auto& [id, job] : jobs) {
    if (!job->holds_nodes()) continue;
    if (job->nodes_unknown) holders_of_any.push_back(job);
    for (const std::string& name : job->nodes) {
      auto& list = index[name];
      if (list.empty() || list.back() != job) list.push_back(job);
    }
  }
  holders = std::make_shared<const decltype(index)>(std::move(index));
}

}  // namespace slurm
