// Jobs in SimSlurm: their submission, start, end and loss.
#include <algorithm>
#include <tuple>
#include <utility>

#include "sim/slurm/sim_slurm.hpp"

namespace sim {
namespace {

/// How long ended jobs are listed, in seconds (MinJobAge).
constexpr std::int64_t kJobAge = 300;

/// Reports whether both jobs have the same requirements, so that neither can start if the other finds no room.
bool asks_for_the_same(const SimJob& one, const SimJob& other) {
  const auto wish = [](const SimJob& job) {
    const JobRequest& ask = job.request;
    return std::tie(ask.partition, ask.nodes, ask.exclusive, ask.tasks_per_node, ask.cpus_per_task, ask.memory,
                    ask.required_nodes, ask.external, ask.excluded_nodes, ask.constraints, ask.tres_per_node, ask.held,
                    job.excludes_none);
  };
  return wish(one) == wish(other);
}

}  // namespace

std::int64_t SimSlurm::submit(JobRequest request) {
  if (!up_) return 0;
  if (request.partition.empty()) {
    for (const auto& [name, partition] : partitions_) {
      if (partition.is_default || (request.partition.empty() && !partition.hidden)) request.partition = name;
      if (partition.is_default) break;
    }
  }
  const auto partition = partitions_.find(request.partition);
  if (partition == partitions_.end() || partition->second.root_only) return 0;
  // Only external jobs run on external nodes.
  const auto external = [&](const std::string& name) { return nodes_.contains(name) && nodes_.at(name).external; };
  if (!request.external && std::ranges::any_of(request.required_nodes, external)) return 0;
  // Slurm refuses the job with ESLURM_PARTITION_NOT_AVAIL.
  if (const std::string& state = partition->second.state; state == "DRAIN" || state == "INACTIVE") return 0;
  SimJob job;
  job.id = ++last_job_;
  job.submitted = loop_.clock().mono();
  job.submitted_at = now_seconds();
  if (request.limit) request.duration = std::min(request.duration, *request.limit);
  job.left = request.duration;
  job.request = std::move(request);
  jobs_[job.id] = std::move(job);
  touch_jobs();
  schedule_soon();
  return last_job_;
}

std::vector<const SimJob*> SimSlurm::jobs_on(std::string_view node) const {
  std::vector<const SimJob*> out;
  const auto given = given_.find(node);
  if (given == given_.end()) return out;
  for (const std::int64_t id : given->second) {
    const auto job = jobs_.find(id);
    if (job != jobs_.end() && job->second.holds(node)) out.push_back(&job->second);
  }
  return out;
}

bool SimSlurm::completing(std::string_view node) const {
  const std::vector<const SimJob*> jobs = jobs_on(node);
  return std::any_of(jobs.begin(), jobs.end(), [](const SimJob* job) { return job->completing; });
}

int SimSlurm::free_cpus(const SimNode& node) const {
  int free = node.cpus;
  for (const SimJob* job : jobs_on(node.name)) {
    if (job->state == SimJob::State::kRunning) free -= job->request.exclusive ? node.cpus : job->request.cpus();
  }
  return std::max(free, 0);
}

void SimSlurm::schedule_soon() {
  if (scheduling_) return;
  scheduling_ = true;
  later(options_.scheduling, [this] {
    scheduling_ = false;
    if (up_) schedule();
  });
}

void SimSlurm::schedule() {
  std::erase_if(jobs_, [&](const auto& entry) {
    const auto& [id, job] = entry;
    if (!job.ended() || job.end + kJobAge >= now_seconds()) return false;
    for (const std::string& node : job.nodes) given_[node].erase(id);
    return true;
  });
  std::set<std::string> waited;  // The partitions in which a job waits already.
  // The last job that found no room. Jobs with the same requirements are skipped: there can be thousands of them, and no
  // resources become free during this loop.
  const SimJob* no_room = nullptr;
  SlurmErrno why = SlurmErrno::kSuccess;
  for (auto& [id, job] : jobs_) {
    if (job.state != SimJob::State::kPending || job.completing) continue;
    if (loop_.clock().mono() < job.not_before) {
      later(job.not_before - loop_.clock().mono(), [this] { schedule_soon(); });
      continue;
    }
    const bool same = no_room != nullptr && asks_for_the_same(*no_room, job);
    if (!same && try_start(job)) continue;
    if (!same) {
      no_room = job.request.held ? nullptr : &job;
      why = job.request.external ? prospects(job) : SlurmErrno::kSuccess;
    }
    if (job.request.external) tell_why(job, why, !waited.contains(job.request.partition));
    if (!job.request.held) waited.insert(job.request.partition);
  }
}

bool SimSlurm::try_start(SimJob& job) {
  const auto partition = partitions_.find(job.request.partition);
  if (partition == partitions_.end()) return false;
  // A drained partition still starts its pending jobs.
  if (const std::string& state = partition->second.state; state != "UP" && state != "DRAIN") return false;
  if (job.request.held) return false;
  std::vector<std::string> chosen;
  const auto take = [&](const std::string& name) {
    const auto node = nodes_.find(name);
    if (node == nodes_.end() || !usable(node->second) || !may_use(job, node->second)) return false;
    if (!node->second.reservation.empty()) return false;
    // The slurmd would not accept the job's launch from a slurmctld with another key.
    if (const auto slurmd = slurmds_.find(name);
        slurmd != slurmds_.end() && (slurmd->second.away || !slurmd->second.keys.accept(keys_)))
      return false;
    if (!has_free(node->second, job.request)) return false;
    chosen.push_back(name);
    return true;
  };
  for (const std::string& name : job.request.required_nodes) {
    // A job can name more nodes than it takes.
    if (static_cast<int>(chosen.size()) >= job.request.nodes) break;
    if (!take(name) && job.request.nodes >= static_cast<int>(job.request.required_nodes.size())) return false;
  }
  for (const std::string& name : partition->second.members) {
    if (static_cast<int>(chosen.size()) >= job.request.nodes) break;
    if (std::find(chosen.begin(), chosen.end(), name) == chosen.end()) take(name);
  }
  if (static_cast<int>(chosen.size()) < job.request.nodes) return false;
  job.nodes = std::move(chosen);
  for (const std::string& name : job.nodes) given_[name].insert(job.id);
  job.state = SimJob::State::kRunning;
  job.start = now_seconds();
  job.started = loop_.clock().mono();
  job.doomed = job.unlaunched = false;
  job.reason = "None";
  job.description.clear();
  job.prolog_until = job.started + job.request.prolog;
  job.left += job.request.prolog;
  if (job.request.prolog > core::Duration{0})
    loop_.after(job.request.prolog, [alive = alive_, this] {
      if (*alive) touch_jobs();
    });
  job.end = job.request.limit ? job.start + job.request.limit->count() / 1000 : 0;
  // slurmctld clears the reason of a node when a job starts there. Before 26.05, an old reason can last until then.
  for (const std::string& name : job.nodes) nodes_[name].reason.clear();
  touch_jobs();
  touch_nodes();
  start_clock(job);
  for (const std::string& name : job.nodes) {
    const auto slurmd = slurmds_.find(name);
    if (job.request.external || job.doomed || (slurmd != slurmds_.end() && slurmd->second.registered)) continue;
    job.doomed = true;
    tell_loss(job, {.what = JobLoss::What::kStranded, .cause = JobLoss::Cause::kNoSlurmd, .node = name});
  }
  if (job.request.prolog_fails)
    later(options_.scheduling, [this, id = job.id, turn = turns_[job.id]] { fail_prolog(id, turn); });
  return true;
}

void SimSlurm::start_clock(SimJob& job) {
  job.resumed_at = loop_.clock().mono();
  const std::uint64_t turn = ++turns_[job.id];
  loop_.after(job.left, [alive = alive_, this, id = job.id, turn] {
    if (*alive) run_out(id, turn);
  });
}

void SimSlurm::run_out(std::int64_t id, std::uint64_t turn) {
  const auto it = jobs_.find(id);
  if (it == jobs_.end() || turns_[id] != turn || it->second.state != SimJob::State::kRunning) return;
  // slurmctld ends an external job itself, without a report from its nodes.
  const bool heard = up_ && !it->second.doomed &&
                     (it->second.request.external || std::all_of(it->second.nodes.begin(), it->second.nodes.end(),
                                                                 [&](const std::string& node) { return reached(node); }));
  if (!heard) {
    // slurmd reports the end when slurmctld is back. If slurmd is dead, nobody reports the end of its jobs.
    later(core::Duration{1000}, [this, id, turn] { run_out(id, turn); });
    return;
  }
  const SimJob& job = it->second;
  const bool timeout = job.request.external || (job.request.limit && job.request.duration >= *job.request.limit);
  if (timeout) it->second.reason = "TimeLimit";
  end_job(it->second, timeout ? SimJob::State::kTimeout : SimJob::State::kCompleted);
}

/// Ends the job. The nodes of the job then run the epilog. The nodes of an external job are free at once.
void SimSlurm::end_job(SimJob& job, SimJob::State state) {
  const bool had_nodes = job.state == SimJob::State::kRunning || job.state == SimJob::State::kSuspended;
  job.state = state;
  job.end = now_seconds();
  job.completing = had_nodes && !job.request.external;
  touch_jobs();
  touch_nodes();
  if (had_nodes && job.request.external) return schedule_soon();
  if (!had_nodes) return;
  const std::uint64_t turn = ++turns_[job.id];
  later(options_.epilog, [this, id = job.id, turn] {
    const auto it = jobs_.find(id);
    if (it == jobs_.end() || turns_[id] != turn) return;
    // If one of the job's nodes was deleted, the job stays COMPLETING, because nobody reports its end on that node.
    if (std::ranges::any_of(it->second.nodes, [&](const std::string& node) { return !nodes_.contains(node); })) return;
    it->second.completing = false;
    for (const std::string& node : it->second.nodes) {
      if (it->second.request.epilog_fails) drain_itself(nodes_.at(node), "Epilog error");
    }
    if (it->second.state == SimJob::State::kPending) it->second.nodes.clear();  // it was requeued
    touch_jobs();
    touch_nodes();
    schedule_soon();
  });
}

/// Handles a failed prolog: the node is drained, and the job starts again elsewhere.
void SimSlurm::fail_prolog(std::int64_t id, std::uint64_t turn) {
  const auto it = jobs_.find(id);
  if (it == jobs_.end() || turns_[id] != turn || !up_) return;
  SimJob& job = it->second;
  const std::string node = job.nodes.front();
  ++turns_[id];
  job.nodes.clear();
  job.state = SimJob::State::kPending;
  job.left = job.request.duration;
  job.not_before = loop_.clock().mono() + options_.requeue_delay;
  job.request.prolog_fails = false;
  ++job.restarts;
  if (const auto record = nodes_.find(node); record != nodes_.end()) drain_itself(record->second, "Prolog error");
  touch_jobs();
  tell_loss(job, {.what = JobLoss::What::kRequeued,
                  .cause = JobLoss::Cause::kProlog,
                  .node = node,
                  .told = std::exchange(job.doomed, false)});
  schedule_soon();
}

bool SimSlurm::in_prolog(const SimJob& job) const {
  return job.state == SimJob::State::kRunning && loop_.clock().mono() < job.prolog_until;
}

/// Loses the launches that wait for a prolog, because they exist only in slurmctld's memory. A job whose launch is lost counts
/// as running until it is cancelled.
void SimSlurm::lose_launches(JobLoss::Cause cause) {
  for (auto& [id, job] : jobs_) {
    if (!in_prolog(job) || job.unlaunched) continue;
    job.unlaunched = true;
    const bool told = std::exchange(job.doomed, true);
    tell_loss(job, {.what = JobLoss::What::kStranded, .cause = cause, .node = job.nodes.front(), .told = told});
  }
}

void SimSlurm::fail_job(SimJob& job, JobLoss::Cause cause) {
  const JobLoss loss{.cause = cause,
                     .node = job.nodes.empty() ? "" : job.nodes.front(),
                     .pending = job.state == SimJob::State::kPending,
                     .told = job.doomed};
  end_job(job, SimJob::State::kNodeFail);
  tell_loss(job, loss);
}

/// Ends the node's jobs, for example because the node is DOWN: each job is requeued or fails. Does not wait for epilogs.
void SimSlurm::release_jobs(const std::string& node, JobLoss::Cause cause, const std::string& by, bool external,
                            bool doomed_only) {
  for (auto& [id, job] : jobs_) {
    if (!job.holds(node) || (job.request.external && !external) || (doomed_only && !job.doomed)) continue;
    ++turns_[id];
    const bool ended_already = job.state != SimJob::State::kRunning && job.state != SimJob::State::kSuspended;
    job.completing = false;
    if (!job.request.external) job.nodes.clear();
    touch_jobs();
    if (ended_already) continue;
    JobLoss loss{.cause = cause, .node = node, .by = by, .told = std::exchange(job.doomed, false)};
    if (job.request.requeue && !job.request.external) {
      loss.what = JobLoss::What::kRequeued;
      job.state = SimJob::State::kPending;
      job.left = job.request.duration;
      job.not_before = loop_.clock().mono() + options_.requeue_delay;
      ++job.restarts;
    } else {
      job.state = SimJob::State::kNodeFail;
      job.end = now_seconds();
      job.reason = "NodeDown";
      job.failed_node = node;
    }
    tell_loss(job, loss);
  }
  schedule_soon();
}

bool SimSlurm::suspend(std::int64_t id) {
  const auto it = jobs_.find(id);
  if (!up_ || it == jobs_.end() || it->second.state != SimJob::State::kRunning) return false;
  SimJob& job = it->second;
  job.left = std::max(core::Duration{0}, job.left - (loop_.clock().mono() - job.resumed_at));
  job.state = SimJob::State::kSuspended;
  ++turns_[id];
  touch_jobs();
  lose_external_nodes(job);
  return true;
}

bool SimSlurm::resume(std::int64_t id) {
  const auto it = jobs_.find(id);
  if (!up_ || it == jobs_.end() || it->second.state != SimJob::State::kSuspended || it->second.completing) return false;
  it->second.state = SimJob::State::kRunning;
  start_clock(it->second);
  touch_jobs();
  lose_external_nodes(it->second);
  return true;
}

bool SimSlurm::cancel(std::int64_t id) {
  const auto it = jobs_.find(id);
  if (!up_ || it == jobs_.end() || it->second.ended() || it->second.completing) return false;
  end_job(it->second, SimJob::State::kCancelled);
  return true;
}

SlurmErrno SimSlurm::cancel_by(std::int64_t id, const std::string& user) {
  if (!up_) return SlurmErrno::kNoController;
  const auto it = jobs_.find(id);
  if (it == jobs_.end()) return SlurmErrno::kInvalidJob;
  SimJob& job = it->second;
  if (job.ended() || job.completing) return SlurmErrno::kAlreadyDone;
  const JobLoss loss{.cause = JobLoss::Cause::kCancelled,
                     .node = job.nodes.empty() ? "" : job.nodes.front(),
                     .by = user,
                     .pending = job.state == SimJob::State::kPending,
                     .told = std::exchange(job.doomed, false)};
  end_job(job, SimJob::State::kCancelled);
  tell_loss(job, loss);
  return SlurmErrno::kSuccess;
}

/// Requeues the job: it is pending again, and holds its nodes until their epilogs have ended.
SlurmErrno SimSlurm::requeue(std::int64_t id, const std::string& user) {
  if (!up_) return SlurmErrno::kNoController;
  const auto it = jobs_.find(id);
  if (it == jobs_.end()) return SlurmErrno::kInvalidJob;
  SimJob& job = it->second;
  if ((job.state != SimJob::State::kRunning && job.state != SimJob::State::kSuspended) || job.completing)
    return SlurmErrno::kSuccess;
  if (job.request.external) return SlurmErrno::kBatchOnly;
  if (!job.request.requeue) return SlurmErrno::kDisabled;
  const JobLoss loss{.what = JobLoss::What::kRequeued,
                     .cause = JobLoss::Cause::kRequeued,
                     .node = job.nodes.front(),
                     .by = user,
                     .told = std::exchange(job.doomed, false)};
  end_job(job, SimJob::State::kPending);
  job.end = 0;
  job.left = job.request.duration;
  job.not_before = loop_.clock().mono() + options_.requeue_delay;
  ++job.restarts;
  tell_loss(job, loss);
  return SlurmErrno::kSuccess;
}

void SimSlurm::cancel_all() {
  for (auto& [id, job] : jobs_) cancel(id);
}

}  // namespace sim
