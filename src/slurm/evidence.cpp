#include "slurm/evidence.hpp"

namespace slurm {
namespace {

core::MonoTime end_of(const Snapshot& snapshot) {
  return snapshot.requested_at + snapshot.good_for();
}

}  // namespace

std::optional<Drained> Drained::of(const plan::Observing& observing, const Snapshot& snapshot, NodeId id) {
  if (!snapshot.fresh(observing.now())) return std::nullopt;
  const Node* node = snapshot.node(id.name);
  if (node == nullptr) return std::nullopt;
  const NodeState& state = node->state;
  if (!state.drains()) return std::nullopt;
  if (state.base != "IDLE" && state.base != "DOWN") return std::nullopt;
  for (const char* busy : {"COMPLETING", "ALLOCATED", "MIXED"}) {
    if (state.has(busy)) return std::nullopt;
  }
  if (!snapshot.jobs_on(id.name).empty()) return std::nullopt;
  return Drained(observing, std::move(id), "Drained", "drained in Slurm: " + node->reason, end_of(snapshot), node->reason);
}

bool absent_for_good(const Snapshot& snapshot, std::string_view node, bool stamped, std::optional<core::MonoTime> since,
                     core::MonoTime now) {
  if (stamped || !snapshot.fresh(now) || snapshot.node(node) != nullptr || !snapshot.jobs_on(node).empty()) return false;
  return !since || now - *since >= kRegistration;
}

std::optional<NeverRegistered> NeverRegistered::of(const plan::Observing& observing, const Snapshot& snapshot, NodeId node,
                                                   bool stamped, std::optional<core::MonoTime> since) {
  if (!absent_for_good(snapshot, node.name, stamped, since, observing.now())) return std::nullopt;
  std::string detail = "node " + node.name + " never registered with Slurm";
  return NeverRegistered(observing, std::move(node), kKind, std::move(detail), end_of(snapshot));
}

std::optional<Forgotten> Forgotten::of(const plan::Observing& observing, const Snapshot& snapshot, NodeId node,
                                       core::WallTime since) {
  if (!snapshot.fresh(observing.now()) || snapshot.node(node.name) != nullptr || snapshot.job_names(node.name))
    return std::nullopt;
  std::string detail = "Slurm has had no node " + node.name + " since " + core::format_rfc3339(since) + ", and no job names it";
  return Forgotten(observing, std::move(node), "Forgotten", std::move(detail), end_of(snapshot));
}

std::optional<Silent> Silent::of(const plan::Observing& observing, const Snapshot& snapshot, NodeId id, std::string_view host) {
  if (!snapshot.fresh(observing.now())) return std::nullopt;
  const Node* node = snapshot.node(id.name);
  if (node == nullptr || !is_silent(*node) || snapshot.job_names(id.name)) return std::nullopt;
  std::string detail = "Kubernetes node " + std::string(host) + " is lost, and Slurm gets no answer from " + id.name;
  return Silent(observing, std::move(id), "Silent", std::move(detail), end_of(snapshot), node->reason, Live::kSilent);
}

std::optional<LeftBehind> LeftBehind::of(const plan::Observing& observing, const Snapshot& snapshot, NodeId id,
                                         std::string why) {
  if (!snapshot.fresh(observing.now())) return std::nullopt;
  const Node* node = snapshot.node(id.name);
  if (node == nullptr || node->state.base != "DOWN") return std::nullopt;
  return LeftBehind(observing, std::move(id), "LeftBehind", std::move(why), end_of(snapshot), node->reason);
}

std::string_view to_string(EndOfJobs how) {
  return how == EndOfJobs::kCancel ? "cancel" : "requeue";
}

bool drained_only_for(const Node& node, Owner owner, std::string_view why) {
  if (!node.state.drains() || node.state.has("FAIL")) return false;
  const Holds holds = Holds::read(node.reason);
  return holds.why(owner) == why && !holds.others_than(owner);
}

bool may_be_ended(const Job& job, std::string_view node, EndOfJobs how) {
  return job.runs_on(node) && (how == EndOfJobs::kCancel || (job.batch && job.requeue));
}

std::optional<DrainTimedOut> DrainTimedOut::of(const plan::Observing& observing, const Snapshot& snapshot, NodeId id,
                                               Owner owner, std::string_view why, EndOfJobs how, std::string detail) {
  if (!snapshot.fresh(observing.now())) return std::nullopt;
  const Node* node = snapshot.node(id.name);
  if (node == nullptr || !drained_only_for(*node, owner, why)) return std::nullopt;
  std::vector<OneJob> jobs;
  for (const auto& job : snapshot.jobs_on(id.name)) {
    if (may_be_ended(*job, id.name, how)) jobs.push_back({job->id, job->full_id(), job->start});
  }
  if (jobs.empty()) return std::nullopt;
  return DrainTimedOut(observing, *node, std::move(id), owner, std::string(why), how, std::move(jobs), std::move(detail),
                       end_of(snapshot));
}

}  // namespace slurm
