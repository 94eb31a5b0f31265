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

std::optional<plan::Evidence> SnapshotWitness::drained(const Snapshot& snapshot, std::string_view name,
                                                       std::string_view pod_uid, core::MonoTime now) {
  if (!snapshot.fresh(now)) return std::nullopt;
  const Node* node = snapshot.node(name);
  if (node == nullptr) return std::nullopt;
  const NodeState& state = node->state;
  if (!state.has("DRAIN") || state.has("UNDRAIN")) return std::nullopt;
  if (state.base != "IDLE" && state.base != "DOWN") return std::nullopt;
  for (const char* busy : {"COMPLETING", "ALLOCATED", "MIXED"}) {
    if (state.has(busy)) return std::nullopt;
  }
  if (!snapshot.jobs_on(name).empty()) return std::nullopt;
  return plan::Evidence(plan::Evidence::Kind::kDrained, std::string(pod_uid), "drained in Slurm: " + node->reason);
}

std::optional<plan::Evidence> SnapshotWitness::never_registered(const Snapshot& snapshot, std::string_view node,
                                                                std::string_view pod_uid, bool stamped,
                                                                std::optional<core::MonoTime> since, core::MonoTime now) {
  if (stamped || !snapshot.fresh(now) || snapshot.node(node) != nullptr) return std::nullopt;
  if (since && now - *since < kRegistration) return std::nullopt;
  return plan::Evidence(plan::Evidence::Kind::kNeverRegistered, std::string(pod_uid),
                        "node " + std::string(node) + " never registered with Slurm");
}

std::optional<plan::Evidence> SnapshotWitness::forgotten(const Snapshot& snapshot, std::string_view node,
                                                         std::string_view pod_uid, core::WallTime since, core::MonoTime now) {
  if (!snapshot.fresh(now) || snapshot.node(node) != nullptr || snapshot.job_names(node)) return std::nullopt;
  return plan::Evidence(
      plan::Evidence::Kind::kForgotten, std::string(pod_uid),
      "Slurm has had no node " + std::string(node) + " since " + core::format_rfc3339(since) + ", and no job names it");
}

std::optional<plan::Evidence> SnapshotWitness::silent(const Snapshot& snapshot, std::string_view name, std::string_view pod_uid,
                                                      std::string_view host, core::MonoTime now) {
  if (!snapshot.fresh(now)) return std::nullopt;
  const Node* node = snapshot.node(name);
  if (node == nullptr || !is_silent(*node) || snapshot.job_names(name)) return std::nullopt;
  return plan::Evidence(plan::Evidence::Kind::kSilent, std::string(pod_uid),
                        "Kubernetes node " + std::string(host) + " is lost, and Slurm hears nothing of " + std::string(name));
}

}  // namespace slurm
