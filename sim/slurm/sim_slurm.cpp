#include "sim/slurm/sim_slurm.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "sim/slurm/text.hpp"

namespace sim {
namespace {

bool yes(std::string_view text) {
  return lower(text) == "yes" || text == "1" || lower(text) == "true";
}

/// Returns the value in the last line that sets the key; nullopt if no line sets it.
std::optional<std::string> last(const std::vector<ConfWords>& lines, std::string_view key) {
  std::optional<std::string> out;
  for (const ConfWords& words : lines) {
    const auto it = std::ranges::find(words, key, &ConfWords::value_type::first);
    if (it != words.end()) out = it->second;
  }
  return out;
}

}  // namespace

struct SimSlurm::Loaded {
  std::string text, cluster_name;
  int return_to_service = 0;
  std::size_t max_nodes = 0;
  core::Duration slurmd_timeout{0};
  std::map<std::string, std::string> node_sets;
  std::map<std::string, SimPartition> partitions;
  std::set<std::string> gres_types;
};

bool SimJob::holds(std::string_view node) const {
  if (state != State::kRunning && state != State::kSuspended && !completing) return false;
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

const std::string& SlurmKeys::key(const std::string& kid) const {
  const auto found = bytes.find(kid);
  return found == bytes.end() ? kid : found->second;
}

bool SlurmKeys::accept(const SlurmKeys& sender) const {
  const std::string& with = sender.key(sender.signs());
  if (alone || sender.alone) return key(signs()) == with;
  return std::ranges::find(kids, sender.signs()) != kids.end() && key(sender.signs()) == with;
}

std::string_view to_string(SimJob::State state) {
  switch (state) {
    case SimJob::State::kPending:
      return "PENDING";
    case SimJob::State::kRunning:
      return "RUNNING";
    case SimJob::State::kSuspended:
      return "SUSPENDED";
    case SimJob::State::kCompleted:
      return "COMPLETED";
    case SimJob::State::kCancelled:
      return "CANCELLED";
    case SimJob::State::kNodeFail:
      return "NODE_FAIL";
    case SimJob::State::kTimeout:
      return "TIMEOUT";
    case SimJob::State::kPreempted:
      return "PREEMPTED";
    case SimJob::State::kFailed:
      return "FAILED";
  }
  return "";
}

std::string_view to_string(JobLoss::What what) {
  switch (what) {
    case JobLoss::What::kLost:
      return "lost";
    case JobLoss::What::kRequeued:
      return "requeued";
    case JobLoss::What::kStranded:
      return "stranded";
  }
  return "";
}

std::string_view to_string(JobLoss::Cause cause) {
  switch (cause) {
    case JobLoss::Cause::kDown:
      return "its node was set DOWN";
    case JobLoss::Cause::kSilence:
      return "its node was silent for SlurmdTimeout";
    case JobLoss::Cause::kOtherKey:
      return "the slurmd of its node has another key";
    case JobLoss::Cause::kSlurmdEnded:
      return "the slurmd of its node ended";
    case JobLoss::Cause::kSlurmdBegan:
      return "another slurmd took the name of its node";
    case JobLoss::Cause::kNoSlurmd:
      return "it was started where no slurmd is";
    case JobLoss::Cause::kPartitionGone:
      return "its partition is gone";
    case JobLoss::Cause::kNodeGone:
      return "a node that it asks for is gone";
    case JobLoss::Cause::kStateLost:
      return "slurmctld lost its state";
    case JobLoss::Cause::kRecordGone:
      return "the record of its node was deleted";
    case JobLoss::Cause::kRequeued:
      return "it was requeued";
    case JobLoss::Cause::kCancelled:
      return "it was cancelled";
    case JobLoss::Cause::kProlog:
      return "its prolog failed";
    case JobLoss::Cause::kReconfigured:
      return "slurmctld was reconfigured during its prolog";
    case JobLoss::Cause::kRestarted:
      return "slurmctld was restarted during its prolog";
    case JobLoss::Cause::kPreempted:
      return "it was preempted";
  }
  return "";
}

SimSlurm::SimSlurm(core::Loop& loop, core::Random& random, ConfigSource config, SlurmOptions options)
    : loop_(loop), random_(random), config_(std::move(config)), options_(std::move(options)) {}

SimSlurm::~SimSlurm() {
  *alive_ = false;
}

void SimSlurm::later(core::Duration delay, std::function<void()> call) {
  // The delay varies, so that events of one kind do not always keep their order.
  const auto jitter = static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(delay.count() / 4 + 1)));
  loop_.after(delay + core::Duration{jitter}, [alive = alive_, call = std::move(call)] {
    if (*alive) call();
  });
}

std::int64_t SimSlurm::now_seconds() const {
  return std::chrono::duration_cast<std::chrono::seconds>(loop_.clock().wall().since_epoch).count();
}

bool SimSlurm::release_at_least(int major, int minor, int micro) const {
  const std::vector<std::string> parts = split(options_.release, '.');
  const auto part = [&](std::size_t i) { return i < parts.size() ? number(parts[i], 0) : 0; };
  return std::tuple(part(0), part(1), part(2)) >= std::tuple(major, minor, micro);
}

// --- Configuration ----------------------------------------------------------------------------------------------------

core::Result<SimSlurm::Loaded> SimSlurm::load(const std::string& text) const {
  const auto lines = read_slurm_conf(text);
  if (!lines) return core::fail(core::ErrorCode::kInvalid, "slurm.conf: " + lines.error().message);
  Loaded out;
  out.text = text;
  out.cluster_name = last(*lines, "clustername").value_or("");
  if (out.cluster_name.empty() || !last(*lines, "slurmctldhost")) {
    return core::fail(core::ErrorCode::kInvalid, "slurm.conf: no ClusterName or no SlurmctldHost");
  }
  out.return_to_service = number(last(*lines, "returntoservice").value_or("0"), 0);
  out.max_nodes = static_cast<std::size_t>(number(last(*lines, "maxnodecount").value_or("0"), 0));
  for (const std::string& type : split(last(*lines, "grestypes").value_or(""), ',')) out.gres_types.insert(type);
  out.slurmd_timeout = options_.slurmd_timeout;
  if (const auto timeout = last(*lines, "slurmdtimeout")) out.slurmd_timeout = std::chrono::seconds{number(*timeout, 300)};
  for (const ConfWords& words : *lines) {
    const auto& [key, value] = words.front();
    if (key != "nodeset") continue;
    // slurmctld exits if its stored state has a node with the name of a NodeSet (24.11 and later).
    if (nodes_.contains(value)) return core::fail(core::ErrorCode::kInvalid, "NodeSet " + value + " has the name of a node");
    out.node_sets[value] = word(words, "feature");
  }
  for (const ConfWords& words : *lines) {
    if (words.front().first != "partitionname") continue;
    SimPartition partition;
    partition.name = words.front().second;
    partition.nodes_expression = word(words, "nodes");
    partition.hidden = yes(word(words, "hidden"));
    partition.root_only = yes(word(words, "rootonly"));
    partition.is_default = yes(word(words, "default"));
    const std::string state = word(words, "state");
    if (!state.empty()) partition.state = state;
    const auto names = read_hostlist(partition.nodes_expression);
    if (!names) return core::fail(core::ErrorCode::kInvalid, "PartitionName=" + partition.name + ": " + names.error().message);
    for (const std::string& name : *names) {
      if (lower(name) == "all" || out.node_sets.contains(name) || nodes_.contains(name)) continue;
      return core::fail(core::ErrorCode::kInvalid, "PartitionName=" + partition.name + ": invalid node name " + name);
    }
    out.partitions[partition.name] = std::move(partition);
  }
  return out;
}

void SimSlurm::put_in_force(Loaded loaded) {
  configuration_ = std::move(loaded.text);
  cluster_name_ = std::move(loaded.cluster_name);
  return_to_service_ = loaded.return_to_service;
  max_nodes_ = loaded.max_nodes;
  slurmd_timeout_ = loaded.slurmd_timeout;
  node_sets_ = std::move(loaded.node_sets);
  gres_types_ = std::move(loaded.gres_types);
  // The jobs of a removed partition: running jobs are killed, and pending jobs can never run.
  for (auto& [id, job] : jobs_) {
    if (job.ended() || job.completing || loaded.partitions.contains(job.request.partition)) continue;
    fail_job(job, JobLoss::Cause::kPartitionGone);
  }
  partitions_ = std::move(loaded.partitions);
  for (auto& [id, job] : jobs_) {
    // slurmctld looks up again the nodes that a job requires by name, even for running jobs. If such a node is missing,
    // slurmctld reports "Invalid req_nodes for JobId".
    const bool lost = !job.ended() && !job.completing &&
                      std::any_of(job.request.required_nodes.begin(), job.request.required_nodes.end(),
                                  [&](const std::string& n) { return !nodes_.contains(n); });
    if (lost) fail_job(job, JobLoss::Cause::kNodeGone);
  }
  partitions_changed_ = now_seconds();
  recompute_membership();
  touch_nodes();
  schedule_soon();
}

void SimSlurm::recompute_membership() {
  for (auto& [name, partition] : partitions_) {
    partition.members.clear();
    partition.words = read_hostlist(partition.nodes_expression).value_or(std::vector<std::string>{});
  }
  for (auto& [name, node] : nodes_) join_partitions(node);
  features_moved_ = false;
}

void SimSlurm::update_partitions(SimNode* joined) {
  if (features_moved_) {
    recompute_membership();
  } else if (joined != nullptr) {
    join_partitions(*joined);
  }
}

void SimSlurm::join_partitions(SimNode& node) {
  node.partitions.clear();
  for (auto& [name, partition] : partitions_) {
    const bool in = std::ranges::any_of(partition.words, [&](const std::string& word) {
      if (word == node.name || lower(word) == "all") return true;
      const auto set = node_sets_.find(word);
      return set != node_sets_.end() && std::ranges::find(node.features, set->second) != node.features.end();
    });
    if (!in) {
      partition.members.erase(node.name);
      continue;
    }
    partition.members.insert(node.name);
    node.partitions.insert(name);
  }
}

// --- slurmctld --------------------------------------------------------------------------------------------------------

core::Result<void> SimSlurm::start() {
  if (up_) return {};
  core::Result<Loaded> loaded = load(config_());
  if (!loaded) return std::unexpected(loaded.error());
  up_ = true;
  up_since_ = loop_.clock().mono();
  keys_ = key_file("");
  put_in_force(std::move(*loaded));
  touch_jobs();
  tend_reservations();
  for (auto& [name, slurmd] : slurmds_) {
    // slurmctld sends its configuration to the slurmds that have registered before and still have a record.
    if (slurmd.registered && nodes_.contains(name)) slurmd.fetched = configuration_;
    // A slurmd that found no slurmctld at its start retries. A slurmd that lost its record does not.
    if (!slurmd.registered && !slurmd.refused) {
      later(options_.config_retry,
            [this, node = name, incarnation = slurmd.incarnation] { register_slurmd(node, incarnation); });
    }
  }
  for (const auto& [name, node] : nodes_) {
    if (node.external) continue;
    if (!hears(name)) {
      watch_silence(name);
    } else if (node.not_responding) {
      ask_again(name);
    }
  }
  moved("");
  return {};
}

void SimSlurm::stop() {
  if (up_) lose_launches(JobLoss::Cause::kRestarted);
  up_ = false;
  moved("");
}

void SimSlurm::kill(core::Duration unsaved) {
  stop();
  const core::MonoTime saved = loop_.clock().mono() - unsaved;
  std::erase_if(nodes_, [&](const auto& entry) {
    const auto& [name, node] = entry;
    return node.made > saved && !node.cloud && !node.external && jobs_on(name).empty();
  });
  for (auto& [at, node] : std::exchange(deleted_, {})) {
    if (at <= saved || nodes_.contains(node.name)) continue;
    const bool unsaved_drain = (now_seconds() - node.reason_at) * 1000 < unsaved.count();
    if (unsaved_drain && node.reason_user == "slurm") {
      node.drain = false;
      node.reason.clear();
    }
    node.reservation.clear();
    nodes_.emplace(node.name, std::move(node));
  }
  touch_nodes();
}

void SimSlurm::lose_state() {
  if (on_delete) {
    for (const auto& [name, node] : nodes_) on_delete(node, {}, "");
  }
  for (const auto& [id, job] : jobs_) {
    if (job.ended() || job.completing) continue;
    tell_loss(job, {.cause = JobLoss::Cause::kStateLost,
                    .node = job.nodes.empty() ? "" : job.nodes.front(),
                    .pending = job.state == SimJob::State::kPending,
                    .told = job.doomed});
  }
  nodes_.clear();
  deleted_.clear();
  jobs_.clear();
  given_.clear();
  last_job_ = 0;
  reservations_.clear();
}

SlurmErrno SimSlurm::reconfigure() {
  if (!up_) return SlurmErrno::kNoController;
  core::Result<Loaded> loaded = load(config_());
  SlurmKeys keys = key_file("");
  if (!loaded || keys.kids.empty()) return SlurmErrno::kUnspecified;
  keys_ = std::move(keys);
  lose_launches(JobLoss::Cause::kReconfigured);
  put_in_force(std::move(*loaded));
  for (auto& [name, node] : nodes_) node.weight = node.conf_weight;
  later(options_.reload, [this] { reload_all(); });
  for (const auto& [name, node] : nodes_) {
    if (slurmds_.contains(name) && !hears(name)) watch_silence(name);
  }
  return SlurmErrno::kSuccess;
}

/// Reconfigures every slurmd that slurmctld knows and that accepts its messages. Without a record, a slurmd is not known.
void SimSlurm::reload_all() {
  if (!up_) return;
  for (auto& [name, slurmd] : slurmds_) {
    const auto node = nodes_.find(name);
    if (!slurmd.registered || node == nodes_.end() || slurmd.away || !slurmd.keys.accept(keys_)) continue;
    SlurmKeys keys = key_file(name);
    if (keys.kids.empty()) continue;
    slurmd.keys = std::move(keys);
    slurmd.fetched = configuration_;
    if (keys_.accept(slurmd.keys)) renew_record(node->second, slurmd, Registration::kReload);
  }
}

int SimSlurm::http_status(const std::string& name, std::string_view path) const {
  if (!release_at_least(25, 11) || !(name.empty() ? up_ : slurmd_runs(name))) return 0;
  return path == "/healthz" || path == "/livez" || path == "/readyz" ? 204 : 404;
}

// --- State ------------------------------------------------------------------------------------------------------------

const SimNode* SimSlurm::node(const std::string& name) const {
  const auto it = nodes_.find(name);
  return it == nodes_.end() ? nullptr : &it->second;
}

std::vector<std::string> SimSlurm::state_words(const SimNode& node) const {
  std::vector<std::string> out;
  const int free = free_cpus(node);
  out.emplace_back(node.down ? "DOWN" : free == 0 ? "ALLOCATED" : free < node.cpus ? "MIXED" : "IDLE");
  if (node.external) out.emplace_back("EXTERNAL");
  if (node.cloud) out.insert(out.end(), {"CLOUD", "POWERED_DOWN"});
  if (!node.reservation.empty()) out.emplace_back("RESERVED");
  if (node.maintenance) out.emplace_back("MAINTENANCE");
  if (node.drain) out.emplace_back("DRAIN");
  if (completing(node.name)) out.emplace_back("COMPLETING");
  if (node.not_responding) out.emplace_back("NOT_RESPONDING");
  if (node.invalid_reg) out.emplace_back("INVALID_REG");
  out.emplace_back("DYNAMIC_NORM");
  return out;
}

}  // namespace sim
