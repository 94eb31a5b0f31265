// Requests of SimSlurm's clients about nodes: updates, deletion, creation.
#include <algorithm>
#include <utility>

#include "sim/slurm/sim_slurm.hpp"

namespace sim {

SlurmErrno SimSlurm::update_node(const std::string& name, const SimNodeUpdate& update, const std::string& user) {
  if (!up_) return SlurmErrno::kNoController;
  const auto it = nodes_.find(name);
  if (it == nodes_.end()) return SlurmErrno::kInvalidNode;
  SimNode& node = it->second;
  if (update.features) {
    // An update cannot remove an active feature.
    const auto& active = update.active_features ? *update.active_features : node.active_features;
    const auto kept = [&](const std::string& f) { return std::ranges::find(*update.features, f) != update.features->end(); };
    if (!std::ranges::all_of(active, kept)) return SlurmErrno::kActiveFeatures;
  }
  const bool frees = update.state && (*update.state == "UNDRAIN" || *update.state == "RESUME" || *update.state == "IDLE");
  if (frees && node.invalid_reg) {
    return release_at_least(26, 5) ? SlurmErrno::kInvalidTransition : SlurmErrno::kInvalidState;
  }
  if (on_update) on_update(node, update, user);
  touch_nodes();
  if (update.comment) node.comment = *update.comment;
  if (update.extra) node.extra = *update.extra;
  if (update.weight) node.weight = *update.weight;
  // The next registration checks whether the machine really has these GRES.
  if (update.gres) node.gres = *update.gres;
  if (update.features) {
    node.features = node.active_features = *update.features;
    features_moved_ = true;
  }
  if (update.reason && !update.reason->empty()) {
    node.reason = *update.reason;
    node.reason_at = now_seconds();
    node.reason_user = user;
  }
  if (!update.state) return SlurmErrno::kSuccess;
  const std::string& state = *update.state;
  const bool clears_reason = release_at_least(26, 5);
  if (frees) node.own_drain.reset();
  if (state == "DRAIN") {
    node.drain = true;
  } else if (state == "UNDRAIN") {
    node.drain = false;
    if (clears_reason && !node.down) node.reason.clear();
    await_answer(node);
  } else if (state == "RESUME") {
    if (!node.down && !node.drain) {
      return release_at_least(26, 5) ? SlurmErrno::kInvalidTransition : SlurmErrno::kInvalidState;
    }
    node.down = node.drain = false;
    node.heard_of = now_seconds();
    if (clears_reason) node.reason.clear();
    await_answer(node);
  } else if (state == "DOWN") {
    set_down(node, JobLoss::Cause::kDown, user);
  } else if (state == "IDLE") {
    const bool was = node.down || node.drain;
    node.down = node.drain = false;
    if (was && clears_reason) node.reason.clear();
    if (was) await_answer(node);
  } else {
    return SlurmErrno::kInvalidState;
  }
  schedule_soon();
  return SlurmErrno::kSuccess;
}

/// Marks a node that returns to service as not responding until its slurmd has answered. An external node has no slurmd.
void SimSlurm::await_answer(SimNode& node) {
  if (node.external) return;
  node.not_responding = true;
  ask_again(node.name);
}

void SimSlurm::set_down(SimNode& node, JobLoss::Cause cause, const std::string& by) {
  node.down = true;
  const bool had_jobs = busy(node.name);
  release_jobs(node.name, cause, by);
  touch_nodes();
  // The end of its jobs makes slurmd register again.
  if (had_jobs && slurmds_.contains(node.name)) ask_again(node.name);
}

SlurmErrno SimSlurm::delete_node(const std::string& name, const std::string& user) {
  if (!up_) return SlurmErrno::kNoController;
  const auto it = nodes_.find(name);
  if (it == nodes_.end()) return SlurmErrno::kInvalidNode;
  const std::vector<const SimJob*> holders = jobs_on(name);
  if (!it->second.reservation.empty()) return SlurmErrno::kBusy;
  // Suspended jobs do not count: slurmctld deletes the node anyway, and the processes of these jobs are orphaned.
  if (std::any_of(holders.begin(), holders.end(), [](const SimJob* job) { return job->state != SimJob::State::kSuspended; })) {
    return SlurmErrno::kBusy;
  }
  if (on_delete) on_delete(it->second, holders, user);
  std::erase_if(deleted_, [&](const auto& old) { return loop_.clock().mono() - old.first > core::Duration{10'000}; });
  deleted_.emplace_back(loop_.clock().mono(), it->second);
  for (const SimJob* job : holders) {
    tell_loss(*job, {.what = JobLoss::What::kStranded,
                     .cause = JobLoss::Cause::kRecordGone,
                     .node = name,
                     .by = user,
                     .told = job->doomed});
  }
  forget_record(name);
  return SlurmErrno::kSuccess;
}

/// Removes the record of a node. A running slurmd does not notice this.
void SimSlurm::forget_record(const std::string& name) {
  nodes_.erase(name);
  for (auto& [partition, value] : partitions_) value.members.erase(name);
  for (auto& [reservation, value] : reservations_) value.nodes.erase(name);
  std::erase_if(reservations_, [](const auto& entry) { return entry.second.nodes.empty(); });
  update_partitions(nullptr);
  touch_nodes();
  partitions_changed_ = now_seconds();
  // An external job that no node can run any more is held.
  const auto waits = [](const auto& one) { return one.second.request.external && one.second.state == SimJob::State::kPending; };
  if (std::ranges::any_of(jobs_, waits)) schedule_soon();
}

SlurmErrno SimSlurm::create_node(const std::string& name) {
  if (!up_) return SlurmErrno::kNoController;
  if (nodes_.contains(name)) {
    if (!release_at_least(26, 5)) (void)delete_node(name);
    return SlurmErrno::kNodeExists;
  }
  SimNode node;
  node.name = node.hostname = node.address = name;
  node.cpus = options_.cpus;
  node.cloud = true;
  update_partitions(&(nodes_[name] = std::move(node)));
  touch_nodes();
  partitions_changed_ = now_seconds();
  return SlurmErrno::kSuccess;
}

}  // namespace sim
