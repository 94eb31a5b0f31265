// External nodes and jobs in SimSlurm. These nodes have no slurmd, and these jobs have no script. Sources: the behaviour of
// slurmctld 26.05.5, and its node_mgr.c, node_scheduler.c, job_mgr.c and job_scheduler.c.
#include <algorithm>
#include <array>
#include <utility>

#include "sim/slurm/sim_slurm.hpp"
#include "sim/slurm/text.hpp"

namespace sim {
namespace {

bool has(const std::vector<std::string>& list, const std::string& name) {
  return std::ranges::find(list, name) != list.end();
}

/// Reports whether NodeName= may have this key in a line of POST new/node.
bool node_line_key(std::string_view key) {
  constexpr std::array<std::string_view, 4> kOnlyHere{"nodename", "nodeaddr", "nodehostname", "gresconf"};
  if (std::ranges::find(kOnlyHere, key) != kOnlyHere.end()) return true;
  return read_node_conf(std::string(key) + "=x").has_value();
}

/// Reports whether GresConf="count=2,name=gpu+..." of the line has a record of this name.
bool has_gres_conf(const ConfWords& words, const std::string& name) {
  for (const std::string& record : split(word(words, "gresconf"), '+')) {
    if (has(split(record, ','), "name=" + name)) return true;
  }
  return false;
}

/// Returns the numbers in "gpu:a100:2,nic:1" by name, without the types.
std::map<std::string, int> gres_numbers(const std::string& text) {
  std::map<std::string, int> out;
  for (std::string one : split(text, ',')) {
    if (one.starts_with("gres/")) one.erase(0, 5);
    const std::size_t colon = one.rfind(':');
    const int last = colon == std::string::npos ? 0 : number(std::string_view(one).substr(colon + 1), 0);
    out[one.substr(0, one.find(':'))] += last == 0 ? 1 : last;
  }
  return out;
}

}  // namespace

std::map<std::string, int> JobRequest::gres() const {
  return gres_numbers(tres_per_node);
}

// --- Nodes ------------------------------------------------------------------------------------------------------------

SlurmErrno SimSlurm::create_nodes(const std::string& line) {
  if (!up_) return SlurmErrno::kNoController;
  const auto lines = read_slurm_conf(line);
  if (!lines || lines->size() != 1 || lines->front().front().first != "nodename") return SlurmErrno::kUnspecified;
  const ConfWords& words = lines->front();
  const auto names = read_hostlist(words.front().second);
  if (!names || names->empty() || !std::ranges::all_of(words, [](const auto& one) { return node_line_key(one.first); }))
    return SlurmErrno::kUnspecified;
  const std::string state = lower(word(words, "state"));
  const bool external = state.starts_with("external") && release_at_least(25, 5);
  if (!external && !state.starts_with("cloud")) return SlurmErrno::kInvalidState;
  for (const std::string& name : *names) {
    if (node_sets_.contains(name)) return SlurmErrno::kInvalidNode;
  }
  for (const std::string& name : *names) {
    if (!external) {
      if (const SlurmErrno number = create_node(name); number != SlurmErrno::kSuccess) return number;
      continue;
    }
    if (nodes_.contains(name)) return create_node(name);
    if (nodes_.size() >= max_nodes_) return SlurmErrno::kNodeTableFull;
    const auto count = [&](const char* key, int fallback) { return number(word(words, key), fallback); };
    SimNode node;
    node.name = name;
    node.hostname = word(words, "nodehostname").empty() ? name : word(words, "nodehostname");
    node.address = word(words, "nodeaddr").empty() ? node.hostname : word(words, "nodeaddr");
    node.external = true;
    const int sockets = count("sockets", 1), threads = count("threadspercore", 1);
    node.cpus = count("cpus", sockets * count("corespersocket", 1) * threads);
    node.cores = count("corespersocket", std::max(1, node.cpus / std::max(1, sockets * threads)));
    node.real_memory = count("realmemory", 1);
    node.weight = node.conf_weight = count("weight", 1);
    const std::string features = word(words, "features");
    node.features = node.active_features = split(features.empty() ? word(words, "feature") : features, ',');
    // If GresTypes is not set, a node's GRES are dropped without an error. Otherwise slurmctld looks for them in GresConf=.
    for (const std::string& gres : split(word(words, "gres"), ',')) {
      const std::string type = gres.substr(0, gres.find(':'));
      if (!gres_types_.contains(type)) continue;
      if (!has_gres_conf(words, type)) return SlurmErrno::kInvalidArgument;
      node.gres += (node.gres.empty() ? "" : ",") + gres;
    }
    node.made = loop_.clock().mono();
    if (on_new) on_new(node);
    update_partitions(&(nodes_[name] = std::move(node)));
    touch_nodes();
    partitions_changed_ = now_seconds();
    schedule_soon();
  }
  return SlurmErrno::kSuccess;
}

/// Marks the external nodes of a job as not responding. Called when the job is suspended or resumed: external nodes do not
/// answer slurmctld's message. slurmctld does not ping external nodes, so only a new record ends that state (node_not_resp() in
/// its node_mgr.c).
void SimSlurm::lose_external_nodes(const SimJob& job) {
  for (const std::string& name : job.nodes) {
    if (const auto it = nodes_.find(name); it != nodes_.end() && it->second.external) it->second.not_responding = true;
  }
  touch_nodes();
}

// --- Jobs -------------------------------------------------------------------------------------------------------------

/// Reports whether the node meets the requirements of the job. Ignores the node's state and its other jobs. Checks features,
/// GRES, CPUs and memory of external jobs only.
bool SimSlurm::may_use(const SimJob& job, const SimNode& node) const {
  const auto partition = partitions_.find(job.request.partition);
  if (partition == partitions_.end() || !partition->second.members.contains(node.name)) return false;
  if (node.external && !job.request.external) return false;
  if (!job.excludes_none && has(job.request.excluded_nodes, node.name)) return false;
  if (!job.request.external) return true;
  for (const std::string& feature : split(job.request.constraints, '&')) {
    if (!has(node.active_features, feature)) return false;
  }
  const std::map<std::string, int> gres = gres_numbers(node.gres);
  for (const auto& [name, wanted] : job.request.gres()) {
    const auto there = gres.find(name);
    if (there == gres.end() || there->second < wanted) return false;
  }
  return job.request.cpus() <= node.cpus && job.request.memory <= node.real_memory;
}

/// Reports whether the node has room for the job beside its present jobs. Suspended jobs keep their memory and GRES.
bool SimSlurm::has_free(const SimNode& node, const JobRequest& request) const {
  const std::vector<const SimJob*> jobs = jobs_on(node.name);
  if (request.exclusive && !jobs.empty()) return false;
  const auto memory_of = [&](const JobRequest& one) { return one.memory == 0 ? node.real_memory : one.memory; };
  std::int64_t memory = node.real_memory;
  for (const SimJob* job : jobs) memory -= memory_of(job->request);
  if (free_cpus(node) < (request.exclusive ? node.cpus : request.cpus()) || memory < memory_of(request)) return false;
  if (request.tres_per_node.empty()) return true;
  std::map<std::string, int> gres = gres_numbers(node.gres);
  for (const SimJob* job : jobs) {
    for (const auto& [name, taken] : job->request.gres()) gres[name] -= taken;
  }
  return std::ranges::all_of(request.gres(), [&](const auto& wanted) { return gres[wanted.first] >= wanted.second; });
}

/// Returns why the external job cannot start now: kNodeConfiguration if no node can ever run it, kSuccess if it can start or
/// only waits for resources.
SlurmErrno SimSlurm::prospects(const SimJob& job) const {
  if (job.request.held) return SlurmErrno::kJobHeld;
  const auto partition = partitions_.find(job.request.partition);
  if (partition == partitions_.end()) return SlurmErrno::kInvalidPartition;
  int members = 0, cpus = 0, ever = 0, in_service = 0, busy_nodes = 0;
  for (const std::string& name : partition->second.members) {
    const SimNode& node = nodes_.at(name);
    ++members;
    cpus += node.cpus;
    if (!may_use(job, node)) continue;
    ++ever;
    in_service += usable(node) ? 1 : 0;
    busy_nodes += busy(name) ? 1 : 0;
  }
  if (job.request.nodes > members || job.request.nodes * job.request.cpus() > cpus) return SlurmErrno::kPartitionConfiguration;
  if (ever < job.request.nodes) return SlurmErrno::kNodeConfiguration;
  if (in_service < job.request.nodes && busy_nodes == 0) return SlurmErrno::kNodeNotAvailable;
  return SlurmErrno::kSuccess;
}

/// Sets the reason of a waiting external job. If no node can ever run the job, the job is held until somebody changes it.
/// `why`: the result of prospects(). `first`: no job of its partition waits before it.
void SimSlurm::tell_why(SimJob& job, SlurmErrno why, bool first) {
  std::string reason = first ? "Resources" : "Priority", description;
  switch (why) {
    case SlurmErrno::kJobHeld:
      reason = job.reason == "BadConstraints" || job.reason == "JobHeldAdmin" ? job.reason : "JobHeldUser";
      break;
    case SlurmErrno::kNodeConfiguration:
      reason = "BadConstraints";
      job.request.held = true;
      break;
    case SlurmErrno::kPartitionConfiguration:
      reason = "PartitionConfig";
      break;
    case SlurmErrno::kNodeNotAvailable: {
      std::vector<std::string> down;
      for (const auto& [name, node] : nodes_) {
        if (node.down && partitions_.at(job.request.partition).members.contains(name)) down.push_back(name);
      }
      reason = "ReqNodeNotAvail";
      description =
          "ReqNodeNotAvail, " + (down.empty() ? "May be reserved for other job" : "UnavailableNodes:" + write_hostlist(down));
      break;
    }
    default:
      break;
  }
  if (reason == job.reason && description == job.description) return;
  job.reason = std::move(reason);
  job.description = std::move(description);
  touch_jobs();
}

SimSlurm::Submission SimSlurm::submit_external(JobRequest request) {
  if (!up_) return {0, SlurmErrno::kNoController};
  for (const std::string& name : request.excluded_nodes) {
    if (!nodes_.contains(name)) return {0, SlurmErrno::kInvalidNode};
  }
  if (options_.accounts && !options_.accounts->contains(request.account)) return {0, SlurmErrno::kInvalidAccount};
  if (options_.qos && !request.qos.empty() && !options_.qos->contains(request.qos)) return {0, SlurmErrno::kInvalidQos};
  for (const auto& [name, wanted] : request.gres()) {
    if (!gres_types_.contains(name)) return {0, SlurmErrno::kInvalidGres};
  }
  for (const std::string& feature : split(request.constraints, '&')) {
    if (std::ranges::none_of(nodes_, [&](const auto& node) { return has(node.second.features, feature); }))
      return {0, SlurmErrno::kInvalidFeature};
  }
  request.external = true;
  request.duration = std::chrono::hours(24 * 365);
  const auto named = partitions_.find(request.partition);
  const bool shut = named != partitions_.end() && (named->second.state == "DRAIN" || named->second.state == "INACTIVE");
  const std::int64_t id = submit(std::move(request));
  if (id == 0) return {0, shut ? SlurmErrno::kPartitionNotAvailable : SlurmErrno::kInvalidPartition};
  SimJob& job = jobs_.at(id);
  const SlurmErrno why = prospects(job);
  if (why == SlurmErrno::kNodeConfiguration) {
    job.state = SimJob::State::kFailed;
    job.reason = "BadConstraints";
    job.start = job.end = now_seconds();
    return {0, why};
  }
  if (why != SlurmErrno::kSuccess) tell_why(job, why, true);
  return {id, why};
}

SlurmErrno SimSlurm::update_job(std::int64_t id, const JobUpdate& update) {
  if (!up_) return SlurmErrno::kNoController;
  const auto it = jobs_.find(id);
  if (it == jobs_.end()) return SlurmErrno::kInvalidJob;
  SimJob& job = it->second;
  const auto unknown = [&](const std::string& name) { return !nodes_.contains(name); };
  if (job.ended() || job.completing) return SlurmErrno::kJobFinished;
  touch_jobs();
  // With any change, slurmctld reads the stored list of excluded nodes again. If one of these nodes is gone, the change fails,
  // and slurmctld drops the list: the job may start on the nodes that it excludes (26.05.5).
  if (std::ranges::any_of(job.request.excluded_nodes, unknown)) {
    job.excludes_none = true;
    schedule_soon();
    return SlurmErrno::kInvalidNode;
  }
  job.excludes_none = false;
  if (update.excluded_nodes && *update.excluded_nodes != job.request.excluded_nodes) {
    if (job.state != SimJob::State::kPending) return SlurmErrno::kJobNotPending;
    if (std::ranges::any_of(*update.excluded_nodes, unknown)) return SlurmErrno::kInvalidNode;
    job.request.excluded_nodes = *update.excluded_nodes;
  }
  if (update.held) {
    job.request.held = *update.held;
    job.reason = job.request.held ? "JobHeldAdmin" : "None";
  } else if (job.reason == "BadConstraints") {
    // After any change, slurmctld tries to schedule the held job again.
    job.request.held = false;
    job.reason = "None";
  }
  if (update.comment) job.request.comment = *update.comment;
  if (update.admin_comment) job.request.admin_comment = *update.admin_comment;
  if (update.limit) {
    job.request.limit = *update.limit;
    if (job.state == SimJob::State::kRunning) {
      job.end = job.start + update.limit->count() / 1000;
      job.left = std::max(core::Duration{0}, *update.limit - (loop_.clock().mono() - job.started));
      start_clock(job);
    } else if (job.state == SimJob::State::kPending) {
      job.left = *update.limit;
    }
  }
  schedule_soon();
  return SlurmErrno::kSuccess;
}

bool SimSlurm::preempt(std::int64_t id, core::Duration grace) {
  const auto it = jobs_.find(id);
  if (!up_ || it == jobs_.end() || it->second.state != SimJob::State::kRunning || it->second.preempted != 0) return false;
  SimJob& job = it->second;
  job.preempted = now_seconds();
  const std::int64_t last = job.preempted + grace.count() / 1000;
  job.end = job.end == 0 ? last : std::min(job.end, last);
  touch_jobs();
  const auto take = [this, id, restarts = job.restarts, submitted = job.submitted] {
    const auto still = jobs_.find(id);
    if (still == jobs_.end() || still->second.state != SimJob::State::kRunning || still->second.restarts != restarts ||
        still->second.submitted != submitted)
      return;
    const JobLoss loss{.cause = JobLoss::Cause::kPreempted, .node = still->second.nodes.front(), .told = still->second.doomed};
    end_job(still->second, SimJob::State::kPreempted);
    tell_loss(still->second, loss);
  };
  if (grace == core::Duration{0}) {
    take();
  } else {
    later(grace, take);
  }
  return true;
}

}  // namespace sim
