// slurmds in SimSlurm: how they find slurmctld, register and fall silent, and the records that result.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/slurm/sim_slurm.hpp"
#include "sim/slurm/text.hpp"

namespace sim {
namespace {

/// Reports whether State= of --conf may have this value. Only DOWN and DRAIN have an effect.
bool node_state_word(std::string_view text) {
  constexpr std::array<std::string_view, 10> kWords{"cloud", "down",    "drain",  "drained", "draining",
                                                    "fail",  "failing", "future", "idle",    "unknown"};
  return std::ranges::find(kWords, lower(text)) != kWords.end();
}

/// Removes single quotes, as the image's shell does before it passes the arguments to slurmd.
std::string unquoted(std::string text) {
  if (text.size() >= 2 && text.front() == '\'' && text.back() == '\'') return text.substr(1, text.size() - 2);
  return text;
}

}  // namespace

/// Returns how long slurmd takes to find slurmctld; nullopt: slurmd never finds it. slurmd tries the servers in order, and uses
/// the port of the first server for all of them.
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
                  .finds_jobs = left_jobs_.erase(name) > 0,
                  .keys = key_file(name),
                  .fetched = up_ ? std::optional(configuration_) : std::nullopt,
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
  if (up_) slurmd.fetched = configuration_;
  const auto node = nodes_.find(name);
  if (up_ && slurmd.registered && !slurmd.away && node != nodes_.end() && keys_.accept(slurmd.keys)) {
    renew_record(node->second, slurmd, Registration::kReload);
    return;
  }
  slurmd.registered = slurmd.refused = false;
  later(options_.registration, [this, name, incarnation = slurmd.incarnation] { register_slurmd(name, incarnation); });
}

void SimSlurm::stop_slurmd(const std::string& name) {
  const bool ran = slurmds_.erase(name) > 0;
  if (left_jobs_.erase(name) == 0 && !ran) return;
  if (const auto node = nodes_.find(name); ran && node != nodes_.end()) node->second.heard_of = now_seconds();
  doom_jobs(name);
  if (ran) watch_silence(name);
}

void SimSlurm::end_slurmd(const std::string& name) {
  if (slurmds_.erase(name) == 0) return;
  left_jobs_.insert(name);
  if (const auto node = nodes_.find(name); node != nodes_.end()) node->second.heard_of = now_seconds();
  watch_silence(name);
}

void SimSlurm::cut_slurmd(const std::string& name, bool cut) {
  const auto slurmd = slurmds_.find(name);
  if (slurmd == slurmds_.end() || slurmd->second.away == cut) return;
  slurmd->second.away = cut;
  if (cut) {
    watch_silence(name);
  } else {
    ask_again(name);
  }
}

void SimSlurm::lose_registrations() {
  for (auto& [name, slurmd] : slurmds_) {
    if (up_ && !slurmd.registered && !slurmd.away && !nodes_.contains(name) && keys_.accept(slurmd.keys)) slurmd.refused = true;
  }
}

/// Marks the node's jobs as doomed, because their processes have ended. slurmctld notices that when the node is silent for
/// SlurmdTimeout, or when the node's next slurmd registers.
void SimSlurm::doom_jobs(const std::string& name) {
  for (auto& [id, job] : jobs_) {
    if (!job.holds(name) || job.completing || job.doomed || job.request.external) continue;
    job.doomed = true;
    tell_loss(job, {.what = JobLoss::What::kStranded, .cause = JobLoss::Cause::kSlurmdEnded, .node = name});
  }
}

bool SimSlurm::hears(const std::string& name) const {
  return reached(name) && slurmds_.at(name).keys.accept(keys_) && keys_.accept(slurmds_.at(name).keys);
}

bool SimSlurm::reached(const std::string& name) const {
  const auto slurmd = slurmds_.find(name);
  return slurmd != slurmds_.end() && !slurmd->second.away;
}

/// Changes the node's state if its slurmd does not answer, because the slurmd has ended, is cut off or has other keys. The node
/// is NOT_RESPONDING after a third of SlurmdTimeout, and DOWN after the whole SlurmdTimeout.
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
    // slurmctld appends this text to an existing reason, but only once.
    if (node->reason.find(" : Not responding") == std::string::npos) {
      node->reason += node->reason.empty() ? "Not responding" : " : Not responding";
      node->reason_at = now_seconds();
      node->reason_user = "slurm";
    }
    set_down(*node, reached(name) ? JobLoss::Cause::kOtherKey : JobLoss::Cause::kSilence, "slurm");
  });
}

std::vector<std::string> SimSlurm::outdated() const {
  std::vector<std::string> out;
  for (const auto& [name, slurmd] : slurmds_) {
    if (up_ && slurmd.registered && nodes_.contains(name) && hears(name) && slurmd.fetched != configuration_)
      out.push_back(name);
  }
  return out;
}

bool SimSlurm::slurmd_ready(const std::string& name) const {
  const auto it = slurmds_.find(name);
  return it != slurmds_.end() && (it->second.registered || it->second.refused);
}

void SimSlurm::register_slurmd(const std::string& name, std::uint64_t incarnation) {
  const auto it = slurmds_.find(name);
  if (it == slurmds_.end() || it->second.incarnation != incarnation || it->second.registered) return;
  Slurmd& slurmd = it->second;
  if (slurmd.refused) return;
  if (!up_ || !slurmd.finds || slurmd.away || !keys_.accept(slurmd.keys)) {
    // The slurmd does not get its configuration, so it tries again later.
    later(options_.config_retry, [this, name, incarnation] { register_slurmd(name, incarnation); });
    return;
  }
  if (!slurmd.fetched) slurmd.fetched = configuration_;
  if (const auto known = nodes_.find(name); known != nodes_.end()) {
    slurmd.registered = true;
    renew_record(known->second, slurmd, slurmd.finds_jobs ? Registration::kReload : Registration::kStart);
    // slurmctld now ends the jobs that it started there while no slurmd ran.
    if (slurmd.finds_jobs) release_jobs(name, JobLoss::Cause::kNoSlurmd, "", false, true);
    return moved(name);
  }
  if (nodes_.size() >= max_nodes_ || node_sets_.contains(name)) {
    // slurmctld logs the refusal, but answers with success.
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
      // With ReturnToService=2, the registration that sets the node DOWN also ends this DOWN.
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
    node.reason_user = "slurm";
  }
  check_resources(node);
  // Jobs that hold a deleted node of this name do not hold the new node.
  for (auto& [id, job] : jobs_) std::erase(job.nodes, name);
  if (on_new) on_new(node);
  update_partitions(&(nodes_[name] = std::move(node)));
  touch_nodes();
  partitions_changed_ = now_seconds();
  schedule_soon();
}

/// Drains a node that has less memory or GRES than its record says, and returns false. The reason names the missing resource.
/// If the node has another reason but no drain, only its next registration sets this reason. The drain and the reason stay when
/// the node has enough again.
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

/// Drains the node as slurmctld does after a failed prolog or epilog. An existing reason stays, unless slurmctld itself set it.
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

/// Updates the record of a known node when its slurmd registers. The --conf of the slurmd has no effect.
void SimSlurm::renew_record(SimNode& node, Slurmd& slurmd, Registration kind) {
  node.address = slurmd.address;
  node.not_responding = false;
  if (kind != Registration::kAnswer) {
    if (!options_.keeps_instance) node.instance_id = slurmd.instance;
    node.registered_at = now_seconds();
  }
  if (kind == Registration::kStart) release_jobs(node.name, JobLoss::Cause::kSlurmdBegan, "", false);
  const bool own_silence = node.reason == "Not responding";
  const bool rebooted = slurmd.booted > node.heard_of;
  node.heard_of = now_seconds();
  // A DOWN node that lacks memory or GRES stays DOWN.
  if (!check_resources(node)) return touch_nodes();
  if (node.down && (return_to_service_ == 2 || (return_to_service_ == 1 && own_silence && !rebooted))) {
    if (on_return) on_return(node);
    node.down = false;
    // A node that stays drained keeps its reason.
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
    if (up_ && slurmd->second.registered && !slurmd->second.away && slurmd->second.keys.accept(keys_))
      renew_record(node->second, slurmd->second, Registration::kAnswer);
  });
}

}  // namespace sim
