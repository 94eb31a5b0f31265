#include "sim/slurm/sim_slurm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "sim/slurm/text.hpp"

namespace sim {
namespace {

/// Ended jobs are shown for so long (MinJobAge).
constexpr std::int64_t kJobAge = 300;

bool yes(std::string_view text) {
  return lower(text) == "yes" || text == "1" || lower(text) == "true";
}

int number(std::string_view text, int fallback) {
  int value = fallback;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

/// What State= of --conf may say; only DOWN and DRAIN are heeded.
bool node_state_word(std::string_view text) {
  constexpr std::array<std::string_view, 10> kWords{"cloud", "down",    "drain",  "drained", "draining",
                                                    "fail",  "failing", "future", "idle",    "unknown"};
  return std::ranges::find(kWords, lower(text)) != kWords.end();
}

/// Of the last line that sets it; nullopt: none does.
std::optional<std::string> last(const std::vector<ConfWords>& lines, std::string_view key) {
  std::optional<std::string> out;
  for (const ConfWords& words : lines) {
    const auto it = std::ranges::find(words, key, &ConfWords::value_type::first);
    if (it != words.end()) out = it->second;
  }
  return out;
}

/// slurmd gets its arguments from a shell in the image, which takes the quotes off.
std::string unquoted(std::string text) {
  if (text.size() >= 2 && text.front() == '\'' && text.back() == '\'') return text.substr(1, text.size() - 2);
  return text;
}

}  // namespace

struct SimSlurm::Loaded {
  std::string text, cluster_name;
  int return_to_service = 0;
  std::size_t max_nodes = 0;
  core::Duration slurmd_timeout{0};
  std::map<std::string, std::string> node_sets;
  std::map<std::string, SimPartition> partitions;
};

bool SimJob::holds(std::string_view node) const {
  if (state != State::kRunning && state != State::kSuspended && !completing) return false;
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

bool SlurmKeys::accept(const SlurmKeys& sender) const {
  return std::ranges::find(kids, sender.signs()) != kids.end();
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
    case JobLoss::Cause::kProlog:
      return "its prolog failed";
  }
  return "";
}

SimSlurm::SimSlurm(core::Loop& loop, core::Random& random, ConfigSource config, SlurmOptions options)
    : loop_(loop), random_(random), config_(std::move(config)), options_(std::move(options)) {}

SimSlurm::~SimSlurm() {
  *alive_ = false;
}

void SimSlurm::later(core::Duration delay, std::function<void()> call) {
  // A little unlike itself each time, so that events of one kind do not always keep their order.
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
  out.slurmd_timeout = options_.slurmd_timeout;
  if (const auto timeout = last(*lines, "slurmdtimeout")) out.slurmd_timeout = std::chrono::seconds{number(*timeout, 300)};
  for (const ConfWords& words : *lines) {
    const auto& [key, value] = words.front();
    if (key != "nodeset") continue;
    // A node of that name among the stored ones ends slurmctld (24.11 and later).
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
  // Jobs of a partition that is gone: running ones are killed, pending ones cannot run any more.
  for (auto& [id, job] : jobs_) {
    if (job.ended() || job.completing || loaded.partitions.contains(job.request.partition)) continue;
    fail_job(job, JobLoss::Cause::kPartitionGone);
  }
  partitions_ = std::move(loaded.partitions);
  for (auto& [id, job] : jobs_) {
    // "Invalid req_nodes for JobId": what was asked for by name is looked up again, for running jobs as well, and is gone.
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
  for (auto& [name, node] : nodes_) node.partitions.clear();
  for (auto& [name, partition] : partitions_) {
    partition.members.clear();
    const auto words = read_hostlist(partition.nodes_expression);
    if (!words) continue;
    for (const std::string& word : *words) {
      const auto set = node_sets_.find(word);
      const bool all = lower(word) == "all";
      for (auto& [node_name, node] : nodes_) {
        const bool in = all || node_name == word ||
                        (set != node_sets_.end() &&
                         std::find(node.features.begin(), node.features.end(), set->second) != node.features.end());
        if (!in) continue;
        partition.members.insert(node_name);
        node.partitions.insert(name);
      }
    }
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
  for (auto& [name, slurmd] : slurmds_) {
    // Those that found nobody at their start try again; those that lost their record do not.
    if (!slurmd.registered && !slurmd.refused) {
      later(options_.config_retry,
            [this, node = name, incarnation = slurmd.incarnation] { register_slurmd(node, incarnation); });
    }
  }
  for (const auto& [name, node] : nodes_) {
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
  up_ = false;
  moved("");
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
  jobs_.clear();
  turns_.clear();
  reservations_.clear();
}

SlurmErrno SimSlurm::reconfigure() {
  if (!up_) return SlurmErrno::kNoController;
  core::Result<Loaded> loaded = load(config_());
  if (!loaded) return SlurmErrno::kUnspecified;
  keys_ = key_file("");
  put_in_force(std::move(*loaded));
  for (auto& [name, node] : nodes_) node.weight = node.conf_weight;
  later(options_.reload, [this] { reload_all(); });
  for (const auto& [name, node] : nodes_) {
    if (slurmds_.contains(name) && !hears(name)) watch_silence(name);
  }
  return SlurmErrno::kSuccess;
}

/// slurmctld tells every slurmd that it knows, and that takes its word; one whose record is gone is not known.
void SimSlurm::reload_all() {
  if (!up_) return;
  for (auto& [name, slurmd] : slurmds_) {
    const auto node = nodes_.find(name);
    if (!slurmd.registered || node == nodes_.end() || !slurmd.keys.accept(keys_)) continue;
    slurmd.keys = key_file(name);
    if (keys_.accept(slurmd.keys)) renew_record(node->second, slurmd, Registration::kReload);
  }
}

int SimSlurm::http_status(const std::string& name, std::string_view path) const {
  if (!release_at_least(25, 11) || !(name.empty() ? up_ : slurmd_runs(name))) return 0;
  return path == "/healthz" || path == "/livez" || path == "/readyz" ? 204 : 404;
}

// --- slurmd -----------------------------------------------------------------------------------------------------------

/// One after the other is asked, all at the port of the first.
std::optional<core::Duration> SimSlurm::way_to_slurmctld(const std::vector<std::string>& servers) const {
  if (servers.empty()) return core::Duration{0};
  const std::string port = servers.front().substr(servers.front().rfind(':'));
  core::Duration lost{0};
  std::set<std::string> hosts;
  for (const std::string& server : servers) {
    if (!hosts.insert(server.substr(0, server.rfind(':'))).second) return std::nullopt;  // "Duplicate SlurmctldHost records"
  }
  for (const std::string& server : servers) {
    if (server.substr(0, server.rfind(':')) + port == options_.listens) return lost;
    lost += options_.failover;
  }
  return std::nullopt;
}

bool SimSlurm::start_slurmd(const std::string& name, const std::string& given, const std::string& address,
                            const std::string& instance, const std::string& conf_server, std::int64_t booted) {
  const std::string words = unquoted(given);
  const auto parsed = read_node_conf(words);
  if (!parsed) return false;
  if (const std::string state = word(*parsed, "state"); !state.empty() && !node_state_word(state)) return false;
  Slurmd& slurmd = slurmds_[name];
  slurmd = Slurmd{.conf = words,
                  .address = address,
                  .instance = instance,
                  .incarnation = ++last_incarnation_,
                  .booted = booted,
                  .keys = key_file(name),
                  .finds = way_to_slurmctld(split(conf_server, ','))};
  const core::Duration wait = up_ ? options_.registration + slurmd.finds.value_or(core::Duration{0}) : options_.config_retry;
  later(wait, [this, name, incarnation = slurmd.incarnation] { register_slurmd(name, incarnation); });
  return true;
}

void SimSlurm::reload_slurmd(const std::string& name) {
  const auto it = slurmds_.find(name);
  if (it == slurmds_.end()) return;
  Slurmd& slurmd = it->second;
  slurmd.keys = key_file(name);
  if (const auto node = nodes_.find(name); up_ && slurmd.registered && node != nodes_.end() && keys_.accept(slurmd.keys)) {
    renew_record(node->second, slurmd, Registration::kReload);
    return;
  }
  slurmd.registered = slurmd.refused = false;
  later(options_.registration, [this, name, incarnation = slurmd.incarnation] { register_slurmd(name, incarnation); });
}

void SimSlurm::stop_slurmd(const std::string& name) {
  if (slurmds_.erase(name) == 0) return;
  if (const auto node = nodes_.find(name); node != nodes_.end()) node->second.heard_of = now_seconds();
  doom_jobs(name);
  watch_silence(name);
}

/// Their processes are gone; slurmctld learns that by silence, or from the next slurmd of the name.
void SimSlurm::doom_jobs(const std::string& name) {
  for (auto& [id, job] : jobs_) {
    if (!job.holds(name) || job.completing || job.doomed) continue;
    job.doomed = true;
    tell_loss(job, {.what = JobLoss::What::kStranded, .cause = JobLoss::Cause::kSlurmdEnded, .node = name});
  }
}

bool SimSlurm::hears(const std::string& name) const {
  const auto slurmd = slurmds_.find(name);
  return slurmd != slurmds_.end() && slurmd->second.keys.accept(keys_) && keys_.accept(slurmd->second.keys);
}

/// The end of a slurmd, or that it has other keys, is noticed by silence: after a third of SlurmdTimeout, and after all of it
/// the node is DOWN.
void SimSlurm::watch_silence(const std::string& name) {
  const auto still = [this, name, silence = ++silences_[name]]() -> SimNode* {
    const auto it = nodes_.find(name);
    const bool over = !up_ || it == nodes_.end() || hears(name) || silences_[name] != silence;
    return over ? nullptr : &it->second;
  };
  later(slurmd_timeout_ / 3, [this, still] {
    if (SimNode* node = still(); node != nullptr && !node->not_responding) {
      node->not_responding = true;
      touch_nodes();
    }
  });
  later(slurmd_timeout_, [this, name, still] {
    SimNode* node = still();
    if (node == nullptr || node->down) return;
    node->not_responding = true;
    // A reason that is there is added to, once.
    if (node->reason.find(" : Not responding") == std::string::npos) {
      node->reason += node->reason.empty() ? "Not responding" : " : Not responding";
      node->reason_at = now_seconds();
      node->reason_user = "slurm";
    }
    set_down(*node, slurmds_.contains(name) ? JobLoss::Cause::kOtherKey : JobLoss::Cause::kSilence, "slurm");
  });
}

bool SimSlurm::slurmd_ready(const std::string& name) const {
  const auto it = slurmds_.find(name);
  return it != slurmds_.end() && (it->second.registered || it->second.refused);
}

void SimSlurm::register_slurmd(const std::string& name, std::uint64_t incarnation) {
  const auto it = slurmds_.find(name);
  if (it == slurmds_.end() || it->second.incarnation != incarnation || it->second.registered) return;
  Slurmd& slurmd = it->second;
  if (!up_ || !slurmd.finds || !keys_.accept(slurmd.keys)) {
    // It does not get its configuration.
    later(options_.config_retry, [this, name, incarnation] { register_slurmd(name, incarnation); });
    return;
  }
  if (const auto known = nodes_.find(name); known != nodes_.end()) {
    slurmd.registered = true;
    renew_record(known->second, slurmd, Registration::kStart);
    return moved(name);
  }
  if (nodes_.size() >= max_nodes_ || node_sets_.contains(name)) {
    // slurmctld logs it and answers success all the same.
    slurmd.refused = true;
    return moved(name);
  }
  slurmd.registered = true;
  add_record(name, slurmd);
  moved(name);
}

void SimSlurm::add_record(const std::string& name, Slurmd& slurmd) {
  SimNode node;
  node.name = node.hostname = name;
  node.address = slurmd.address;
  node.instance_id = slurmd.instance;
  node.cpus = options_.cpus;
  node.real_memory = options_.memory;
  node.registered_at = node.heard_of = now_seconds();
  node.made = loop_.clock().mono();
  std::string reason;
  for (const auto& [key, value] : read_node_conf(slurmd.conf).value_or(ConfWords{})) {
    if (key == "features" || key == "feature") {
      node.features = node.active_features = split(value, ',');
    } else if (key == "state") {
      node.drain = lower(value).starts_with("drain");
      // With ReturnToService=2 a DOWN of its own is over in the same registration.
      node.down = lower(value) == "down" && return_to_service_ != 2;
    } else if (key == "reason") {
      reason = value;
    } else if (key == "weight") {
      node.weight = node.conf_weight = number(value, 1);
    } else if (key == "cpus" || key == "procs") {
      node.cpus = number(value, options_.cpus);
    } else if (key == "realmemory") {
      node.real_memory = number(value, 1000);
    } else if (key == "gres") {
      node.gres = value;
    }
  }
  if (node.drain || node.down) {
    node.reason = reason;
    node.reason_user = "root";
  }
  check_resources(node);
  // Jobs that hold one of that name which was deleted under them do not hold this one.
  for (auto& [id, job] : jobs_) std::erase(job.nodes, name);
  nodes_[name] = std::move(node);
  recompute_membership();
  touch_nodes();
  partitions_changed_ = now_seconds();
  schedule_soon();
}

/// A node that has less than its record says is drained. Its reason says so: at once, unless there is one that is no drain's,
/// and then with the next registration. When it has enough again, drain and reason stay.
bool SimSlurm::check_resources(SimNode& node) {
  std::string lacks;
  for (const std::string& gres : split(node.gres, ',')) {
    const std::size_t colon = gres.rfind(':');
    const int wanted = colon == std::string::npos ? 1 : number(std::string_view(gres).substr(colon + 1), 1);
    const std::string name = gres.substr(0, gres.find(':'));
    if (wanted > 0) lacks += fmt::format("gres/{} count reported lower than configured (0 < {}), ", name, wanted);
  }
  if (node.real_memory > options_.memory) {
    lacks += fmt::format("Low RealMemory (reported:{} < 100.00% of configured:{}), ", options_.memory, node.real_memory);
  }
  node.invalid_reg = !lacks.empty();
  if (lacks.empty()) return true;
  if (node.drain || node.reason.empty() || node.reason.starts_with("Not responding")) {
    node.reason = lacks.substr(0, lacks.size() - 2);
    node.reason_user = "slurm";
  }
  if (!node.drain) node.own_drain = loop_.clock().mono();
  node.drain = true;
  return false;
}

/// As for a prolog or an epilog that failed. A reason that is there stays, but for slurmctld's own.
void SimSlurm::drain_itself(SimNode& node, const std::string& reason) {
  if (!node.drain) node.own_drain = loop_.clock().mono();
  node.drain = true;
  if (node.reason.empty() || node.reason.starts_with("Not responding")) {
    node.reason = reason;
    node.reason_at = now_seconds();
    node.reason_user = "root";
  }
  touch_nodes();
}

/// --conf of a node that is known says nothing.
void SimSlurm::renew_record(SimNode& node, Slurmd& slurmd, Registration kind) {
  node.address = slurmd.address;
  node.not_responding = false;
  if (kind != Registration::kAnswer) {
    node.instance_id = slurmd.instance;
    node.registered_at = now_seconds();
  }
  if (kind == Registration::kStart) release_jobs(node.name, JobLoss::Cause::kSlurmdBegan, "");
  const bool own_silence = node.reason == "Not responding";
  const bool rebooted = slurmd.booted > node.heard_of;
  node.heard_of = now_seconds();
  // One that lacks something stays DOWN.
  if (!check_resources(node)) return touch_nodes();
  if (node.down && (return_to_service_ == 2 || (return_to_service_ == 1 && own_silence && !rebooted))) {
    if (on_return) on_return(node);
    node.down = false;
    // The reason of a drain stays with the drain.
    if (!node.drain && (release_at_least(26, 5) || own_silence)) node.reason.clear();
  } else if (rebooted && !node.drain && return_to_service_ != 2) {
    if (node.reason.empty() || own_silence) {
      node.reason = "Node unexpectedly rebooted";
      node.reason_at = now_seconds();
      node.reason_user = "slurm";
    }
    set_down(node, JobLoss::Cause::kSlurmdBegan, "slurm");
  }
  touch_nodes();
  schedule_soon();
}

void SimSlurm::ask_again(const std::string& name) {
  later(options_.answer, [this, name] {
    const auto node = nodes_.find(name);
    const auto slurmd = slurmds_.find(name);
    if (node == nodes_.end()) return;
    if (slurmd == slurmds_.end()) {
      watch_silence(name);
      return;
    }
    if (up_ && slurmd->second.registered && slurmd->second.keys.accept(keys_))
      renew_record(node->second, slurmd->second, Registration::kAnswer);
  });
}

// --- Clients ----------------------------------------------------------------------------------------------------------

SlurmErrno SimSlurm::update_node(const std::string& name, const SimNodeUpdate& update, const std::string& user) {
  if (!up_) return SlurmErrno::kNoController;
  const auto it = nodes_.find(name);
  if (it == nodes_.end()) return SlurmErrno::kInvalidNode;
  SimNode& node = it->second;
  if (update.features) {
    // An active feature is not taken away by the way.
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
  // Whether the machine has it is looked at with the next registration.
  if (update.gres) node.gres = *update.gres;
  if (update.features) node.features = node.active_features = *update.features;
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
    node.not_responding = true;
    if (clears_reason && !node.down) node.reason.clear();
    ask_again(name);
  } else if (state == "RESUME") {
    if (!node.down && !node.drain) {
      return release_at_least(26, 5) ? SlurmErrno::kInvalidTransition : SlurmErrno::kInvalidState;
    }
    node.down = node.drain = false;
    node.not_responding = true;
    node.heard_of = now_seconds();
    if (clears_reason) node.reason.clear();
    ask_again(name);
  } else if (state == "DOWN") {
    set_down(node, JobLoss::Cause::kDown, user);
  } else if (state == "IDLE") {
    const bool was = node.down || node.drain;
    node.down = node.drain = false;
    if (was && clears_reason) node.reason.clear();
    if (was) {
      node.not_responding = true;
      ask_again(name);
    }
  } else {
    return SlurmErrno::kInvalidState;
  }
  schedule_soon();
  return SlurmErrno::kSuccess;
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
  // Suspended jobs do not count: slurmctld deletes the node under them, and their processes are orphans.
  if (std::any_of(holders.begin(), holders.end(), [](const SimJob* job) { return job->state != SimJob::State::kSuspended; })) {
    return SlurmErrno::kBusy;
  }
  if (on_delete) on_delete(it->second, holders, user);
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

/// slurmd, if it lives, does not notice.
void SimSlurm::forget_record(const std::string& name) {
  nodes_.erase(name);
  for (auto& [reservation, nodes] : reservations_) nodes.erase(name);
  std::erase_if(reservations_, [](const auto& entry) { return entry.second.empty(); });
  recompute_membership();
  touch_nodes();
  partitions_changed_ = now_seconds();
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
  nodes_[name] = std::move(node);
  recompute_membership();
  touch_nodes();
  partitions_changed_ = now_seconds();
  return SlurmErrno::kSuccess;
}

void SimSlurm::reserve(const std::string& reservation, std::set<std::string> nodes) {
  if (!up_ || std::ranges::any_of(nodes, [&](const std::string& node) { return busy(node); })) return;
  reservations_[reservation] = std::move(nodes);
  later(options_.reservation, [this] { mark_reserved(); });
}

void SimSlurm::end_reservation(const std::string& reservation) {
  if (up_ && reservations_.erase(reservation) > 0) mark_reserved();
}

void SimSlurm::mark_reserved() {
  for (auto& [name, node] : nodes_) {
    const auto over = std::ranges::find_if(reservations_, [&](const auto& entry) { return entry.second.contains(name); });
    node.reservation = over == reservations_.end() ? "" : over->first;
  }
  touch_nodes();
  schedule_soon();
}

// --- Jobs -------------------------------------------------------------------------------------------------------------

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
  // ESLURM_PARTITION_NOT_AVAIL.
  if (const std::string& state = partition->second.state; state == "DRAIN" || state == "INACTIVE") return 0;
  SimJob job;
  job.id = ++last_job_;
  job.submitted = loop_.clock().mono();
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
  for (const auto& [id, job] : jobs_) {
    if (job.holds(node)) out.push_back(&job);
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
    if (job->state == SimJob::State::kRunning) free -= job->request.exclusive ? node.cpus : 1;
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
  std::erase_if(jobs_, [&](const auto& entry) { return entry.second.ended() && entry.second.end + kJobAge < now_seconds(); });
  for (auto& [id, job] : jobs_) {
    if (job.state != SimJob::State::kPending || job.completing) continue;
    if (loop_.clock().mono() < job.not_before) {
      later(job.not_before - loop_.clock().mono(), [this] { schedule_soon(); });
      continue;
    }
    try_start(job);
  }
}

bool SimSlurm::try_start(SimJob& job) {
  const auto partition = partitions_.find(job.request.partition);
  if (partition == partitions_.end()) return false;
  // One that is drained starts what it has.
  if (const std::string& state = partition->second.state; state != "UP" && state != "DRAIN") return false;
  std::vector<std::string> chosen;
  const auto take = [&](const std::string& name) {
    const auto node = nodes_.find(name);
    if (node == nodes_.end() || !partition->second.members.contains(name) || !usable(node->second)) return false;
    if (!node->second.reservation.empty()) return false;
    // It would not take the job's launch from a slurmctld with another key.
    if (const auto slurmd = slurmds_.find(name); slurmd != slurmds_.end() && !slurmd->second.keys.accept(keys_)) return false;
    const int free = free_cpus(node->second);
    if (free < (job.request.exclusive ? node->second.cpus : 1) || (job.request.exclusive && busy(name))) return false;
    chosen.push_back(name);
    return true;
  };
  for (const std::string& name : job.request.required_nodes) {
    // A job may name more nodes than it takes.
    if (static_cast<int>(chosen.size()) >= job.request.nodes) break;
    if (!take(name) && job.request.nodes >= static_cast<int>(job.request.required_nodes.size())) return false;
  }
  for (const std::string& name : partition->second.members) {
    if (static_cast<int>(chosen.size()) >= job.request.nodes) break;
    if (std::find(chosen.begin(), chosen.end(), name) == chosen.end()) take(name);
  }
  if (static_cast<int>(chosen.size()) < job.request.nodes) return false;
  job.nodes = std::move(chosen);
  job.state = SimJob::State::kRunning;
  job.start = now_seconds();
  job.started = loop_.clock().mono();
  job.doomed = false;
  job.end = job.request.limit ? job.start + job.request.limit->count() / 1000 : 0;
  // A node that works needs no reason (before 26.05 an old one stays until then).
  for (const std::string& name : job.nodes) nodes_[name].reason.clear();
  touch_jobs();
  touch_nodes();
  start_clock(job);
  for (const std::string& name : job.nodes) {
    const auto slurmd = slurmds_.find(name);
    if (job.doomed || (slurmd != slurmds_.end() && slurmd->second.registered)) continue;
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
  const bool heard = up_ && !it->second.doomed &&
                     std::all_of(it->second.nodes.begin(), it->second.nodes.end(),
                                 [&](const std::string& node) { return slurmds_.contains(node); });
  if (!heard) {
    // slurmd tells when slurmctld is back; of a dead slurmd's jobs nobody tells.
    later(core::Duration{1000}, [this, id, turn] { run_out(id, turn); });
    return;
  }
  const SimJob& job = it->second;
  const bool timeout = job.request.limit && job.request.duration >= *job.request.limit;
  end_job(it->second, timeout ? SimJob::State::kTimeout : SimJob::State::kCompleted);
}

/// The job ends; its nodes run the epilog.
void SimSlurm::end_job(SimJob& job, SimJob::State state) {
  const bool had_nodes = job.state == SimJob::State::kRunning || job.state == SimJob::State::kSuspended;
  job.state = state;
  job.end = now_seconds();
  job.completing = had_nodes;
  touch_jobs();
  touch_nodes();
  if (!had_nodes) return;
  const std::uint64_t turn = ++turns_[job.id];
  later(options_.epilog, [this, id = job.id, turn] {
    const auto it = jobs_.find(id);
    if (it == jobs_.end() || turns_[id] != turn) return;
    // Nobody tells of its end on a node that was deleted under it.
    if (std::ranges::any_of(it->second.nodes, [&](const std::string& node) { return !nodes_.contains(node); })) return;
    it->second.completing = false;
    for (const std::string& node : it->second.nodes) {
      if (it->second.request.epilog_fails) drain_itself(nodes_.at(node), "Epilog error");
    }
    touch_jobs();
    touch_nodes();
    schedule_soon();
  });
}

/// Its node is drained, and it begins anew elsewhere.
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

void SimSlurm::fail_job(SimJob& job, JobLoss::Cause cause) {
  const JobLoss loss{.cause = cause,
                     .node = job.nodes.empty() ? "" : job.nodes.front(),
                     .pending = job.state == SimJob::State::kPending,
                     .told = job.doomed};
  end_job(job, SimJob::State::kNodeFail);
  tell_loss(job, loss);
}

/// The node's jobs end with it: requeued, or failed. Epilogs are not awaited.
void SimSlurm::release_jobs(const std::string& node, JobLoss::Cause cause, const std::string& by) {
  for (auto& [id, job] : jobs_) {
    if (!job.holds(node)) continue;
    ++turns_[id];
    const bool ended_already = job.state != SimJob::State::kRunning && job.state != SimJob::State::kSuspended;
    job.completing = false;
    job.nodes.clear();
    touch_jobs();
    if (ended_already) continue;
    JobLoss loss{.cause = cause, .node = node, .by = by, .told = std::exchange(job.doomed, false)};
    if (job.request.requeue) {
      loss.what = JobLoss::What::kRequeued;
      job.state = SimJob::State::kPending;
      job.left = job.request.duration;
      job.not_before = loop_.clock().mono() + options_.requeue_delay;
      ++job.restarts;
    } else {
      job.state = SimJob::State::kNodeFail;
      job.end = now_seconds();
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
  touch_nodes();
  return true;
}

bool SimSlurm::resume(std::int64_t id) {
  const auto it = jobs_.find(id);
  if (!up_ || it == jobs_.end() || it->second.state != SimJob::State::kSuspended || it->second.completing) return false;
  it->second.state = SimJob::State::kRunning;
  start_clock(it->second);
  touch_jobs();
  touch_nodes();
  return true;
}

bool SimSlurm::cancel(std::int64_t id) {
  const auto it = jobs_.find(id);
  if (!up_ || it == jobs_.end() || it->second.ended() || it->second.completing) return false;
  end_job(it->second, SimJob::State::kCancelled);
  return true;
}

void SimSlurm::cancel_all() {
  for (auto& [id, job] : jobs_) cancel(id);
}

// --- What it knows ----------------------------------------------------------------------------------------------------

const SimNode* SimSlurm::node(const std::string& name) const {
  const auto it = nodes_.find(name);
  return it == nodes_.end() ? nullptr : &it->second;
}

std::vector<std::string> SimSlurm::state_words(const SimNode& node) const {
  std::vector<std::string> out;
  const int free = free_cpus(node);
  out.emplace_back(node.down ? "DOWN" : free == 0 ? "ALLOCATED" : free < node.cpus ? "MIXED" : "IDLE");
  if (node.cloud) out.insert(out.end(), {"CLOUD", "POWERED_DOWN"});
  if (!node.reservation.empty()) out.emplace_back("RESERVED");
  if (node.drain) out.emplace_back("DRAIN");
  if (completing(node.name)) out.emplace_back("COMPLETING");
  if (node.not_responding) out.emplace_back("NOT_RESPONDING");
  if (node.invalid_reg) out.emplace_back("INVALID_REG");
  out.emplace_back("DYNAMIC_NORM");
  return out;
}

}  // namespace sim
