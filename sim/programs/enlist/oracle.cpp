#include "sim/programs/enlist/oracle.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base64.hpp"
#include "enlist/coordinator/departed.hpp"
#include "enlist/coordinator/pools_acts.hpp"
#include "enlist/rules/judge.hpp"
#include "enlist/rules/node_conf.hpp"
#include "enlist/rules/service_files.hpp"
#include "sim/programs/enlist/host.hpp"

namespace sim {
namespace {

/// The coordinator must have seen a job that is older than this, because it looks for jobs just before each reconfigure.
constexpr core::Duration kNews{2000};
/// The coordinator's knowledge is allowed to be this old when it acts.
constexpr core::Duration kOld{60000};

/// Returns the segment of the path after `before`; "" if the path does not contain `before`.
std::string behind(std::string_view target, std::string_view before) {
  const std::size_t at = target.find(before);
  if (at == std::string_view::npos) return {};
  std::string_view rest = target.substr(at + before.size());
  return std::string(rest.substr(0, rest.find_first_of("/?")));
}

}  // namespace

EnlistOracle::EnlistOracle(Oracles& all, core::Loop& loop, SimSlurm& slurm,
                           const std::vector<std::shared_ptr<EnlistHost>>& hosts, const enlist::Contents& disk)
    : all_(all), loop_(loop), slurm_(slurm), hosts_(hosts), disk_(disk) {
  all_.add(*this);
  // All tokens for slurmrestd begin with one of these.
  secrets_.insert({"eyJhbGciOi", "eyJ0eXAiOi"});
  slurm_.on_update = [this](const SimNode& node, const SimNodeUpdate& update, const std::string& user) {
    check_update(node, update, user);
  };
  slurm_.on_delete = [this](const SimNode& node, const std::vector<const SimJob*>&, const std::string& user) {
    if (user == kOurs) check_delete(node);
    foreign_.erase(node.name);
  };
  slurm_.on_job_loss = [this](const SimJob& job, const JobLoss& loss) { check_loss(job, loss); };
}

// --- Secrets ----------------------------------------------------------------------------------------------------------

void EnlistOracle::learn(const std::string& secret) {
  secrets_.insert(secret);
  secrets_.insert(core::base64_encode(secret));
}

void EnlistOracle::search(std::string_view text, const std::string& where) {
  for (const std::string& secret : secrets_) {
    if (text.find(secret) != std::string_view::npos) violation("a secret is in " + where);
  }
}

void EnlistOracle::exchanged(const net::HttpRequest& request, const net::HttpResponse& response) {
  if (request.target != "/v1/join") search(request.body, "a request to " + request.target);
  const bool gives_secret = response.status == 200 && (request.target == "/v1/key" || request.target == "/v1/tokens");
  if (!gives_secret) search(response.body, "an answer to " + request.target);
}

void EnlistOracle::request(const net::HttpRequest& request) {
  search(request.target + request.body, "a request to slurmrestd");
  const bool reconfigures = request.target.ends_with("/reconfigure/");
  if (request.method != "GET" || reconfigures) wrote(request.method + " " + request.target);
  if (reconfigures) reconfigured_ = loop_.clock().mono();
  if (request.method != "GET") return;
  if (const std::string node = behind(request.target, "/node/"); !node.empty()) read_[node] = loop_.clock().mono();
  if (request.target.find("/nodes/") != std::string::npos) read_all_ = loop_.clock().mono();
}

void EnlistOracle::wrote(const std::string& what) {
  ++writes_;
  last_write_ = what;
  all_.note(what);
}

// --- Nodes ------------------------------------------------------------------------------------------------------------

const EnlistHost* EnlistOracle::host_of(const std::string& node) const {
  const auto found = std::ranges::find_if(hosts_, [&](const auto& host) { return host->last_node() == node; });
  return found == hosts_.end() ? nullptr : found->get();
}

void EnlistOracle::starts(const EnlistHost& host) {
  const auto wanted = std::ranges::find(disk_.nodes, host.fingerprint(), [](const auto& entry) { return entry.second.key; });
  // A host that has just returned does not know yet that the coordinator has forgotten it.
  if (wanted == disk_.nodes.end() && abandoned(host.fingerprint())) return;
  if (wanted == disk_.nodes.end()) return violation(host.name() + " starts slurmd, and the coordinator has no node for it");
  if (host.node() == wanted->first) violation(host.name() + " restarts a slurmd that runs as node " + host.node());
}

void EnlistOracle::check_update(const SimNode& node, const SimNodeUpdate& update, const std::string& user) {
  if (user != kOurs || by_people(node.name, update)) {
    foreign_[node.name] = loop_.clock().mono();
    return;
  }
  const bool frees = update.state == "UNDRAIN" || update.state == "RESUME" || update.state == "IDLE";
  const bool own = node.reason.starts_with(kOwnReason);
  const bool holds = update.reason.value_or("").starts_with(kOwnReason);
  const auto changed = foreign_.find(node.name);
  // Slurm has no conditional update, so the coordinator can overwrite a change that was made after its last read.
  const bool read_since = changed == foreign_.end() || changed->second < read_[node.name];
  if (update.state == "DRAIN" && holds && (own || !node.drain || !read_since)) return;
  // The coordinator is allowed to give a new record the comment and the drain reason of the previous record.
  if (!update.state && (!update.reason || own)) return;
  if (!frees) return violation(fmt::format("the coordinator sets {} {}", node.name, update.state.value_or("something")));
  if (node.drain && own) return check_gate(node);
  const core::MonoTime since = node.own_drain.value_or(changed == foreign_.end() ? core::MonoTime{} : changed->second);
  if (since < read_[node.name])
    violation(fmt::format("the coordinator frees {}, which it does not hold: {}", node.name, node.reason));
}

void EnlistOracle::check_gate(const SimNode& node) {
  const EnlistHost* host = host_of(node.name);
  if (std::max(read_[node.name], read_all_) < node.made)
    violation("the gate of " + node.name + " is opened before its record was read");
  if (host == nullptr) return violation("the gate of " + node.name + " is opened, and no host has run its slurmd");
  if (!host->check_passed) violation("the gate of " + node.name + " is opened before the check has passed");
}

bool EnlistOracle::by_people(const std::string& node, const SimNodeUpdate& update) const {
  const auto asked = people_.find(node);
  if (asked == people_.end() || loop_.clock().mono() - asked->second > kOld) return false;
  return update.state == "RESUME" || (update.state == "DRAIN" && !update.reason.value_or("").starts_with(kOwnReason));
}

/// Checks that the coordinator may delete the record: the node leaves, or must restart with other parameters.
void EnlistOracle::check_delete(const SimNode& node) {
  const core::MonoTime now = loop_.clock().mono();
  deleted_[node.name] = now;
  if (on_deleted) loop_.after(core::Duration{0}, on_deleted);
  const auto wrong = [&](const std::string& why) { violation("the coordinator deletes the record of " + node.name + why); };
  const auto found = disk_.nodes.find(node.name);
  if (found == disk_.nodes.end()) return wrong(", which it does not know");
  const enlist::Node& own = found->second;
  const bool leaves = own.leaving.wanted;
  if (!(leaves && own.leaving.stop) && !(own.configuring.restarts() && own.configuring.stop)) return wrong(", which stays");
  if (node.instance_id != own.confirmed && node.instance_id != own.report.instance_id)
    return wrong(", which is of another host");
  const EnlistHost* host = host_of(node.name);
  const bool well = host != nullptr && host->up() && host->node() == node.name && slurm_.hears(node.name) &&
                    now - host->well_since() > kOld && now - slurm_.up_since() > kOld && now - node.made > kOld;
  if (well && !(leaves && (own.leaving.force || own.revoked))) return wrong(" under its slurmd");
  // The coordinator must know a reason that somebody else has set, in order to restore it in the next record.
  const bool foreign = (node.drain || node.down) && !node.reason.empty() && node.reason.find(kOwnReason) == std::string::npos;
  const auto changed = foreign_.find(node.name);
  if (!leaves && foreign && !node.own_drain && changed != foreign_.end() && changed->second < read_[node.name] &&
      changed->second + kNews < now && own.marks.reason != node.reason)
    wrong(", and with it the reason " + node.reason);
}

// --- Records ----------------------------------------------------------------------------------------------------------

bool EnlistOracle::is_silent(const std::string& key) const {
  const auto heard = heard_.find(key);
  return heard == heard_.end() || loop_.clock().mono() - heard->second >= enlist::kSilentAfter;
}

void EnlistOracle::leaves(const std::string& node, bool leaves) {
  if (leaves) {
    leaving_.insert(node);
  } else {
    leaving_.erase(node);
  }
}

bool EnlistOracle::was_abandoned(const std::string& node) const {
  return std::ranges::any_of(abandoned_, [&](const auto& entry) { return entry.second == node; });
}

void EnlistOracle::stops(const EnlistHost& host) {
  const std::string& node = host.last_node();
  stopped_[node] = loop_.clock().mono();
  if (const auto steps = host.steps(); !steps.empty())
    violation(host.name() + " stops the slurmd of " + node + " under the step " + steps.front());
  const auto own = disk_.nodes.find(node);
  if (own != disk_.nodes.end() && own->second.key == host.fingerprint() && !own->second.leaving.wanted &&
      !own->second.configuring.restarts())
    violation(host.name() + " stops the slurmd of " + node + ", which stays");
}

void EnlistOracle::stores(const enlist::Changes& changes) {
  for (const auto& [name, after] : changes.nodes) {
    const auto before = disk_.nodes.find(name);
    if (before == disk_.nodes.end()) continue;
    if (after) {
      check_leaving(before->second, *after);
    } else {
      check_forgotten(before->second);
    }
  }
  for (const std::string& name : enlist::departed_nodes(disk_.values)) {
    const auto after = changes.values.find(enlist::departed_value(name));
    const bool forgets = after != changes.values.end() && !after->second && !changes.nodes.contains(name);
    const auto node = enlist::departed_node(disk_.values, name);
    const SimNode* record = slurm_.node(name);
    if (forgets && node && record != nullptr &&
        (record->instance_id == node->confirmed || record->instance_id == node->report.instance_id))
      violation("the coordinator forgets the departed node " + name + ", which is in Slurm");
  }
  for (const auto& [name, after] : changes.pools) {
    if (after) {
      gone_pools_.erase(name);
    } else {
      gone_pools_.insert(name);
    }
  }
}

void EnlistOracle::check_leaving(const enlist::Node& before, const enlist::Node& after) {
  if (after.leaving.dead && !before.leaving.dead && !is_silent(after.key))
    violation(after.name + " leaves as a dead one, and its host was heard of");
  if (after.leaving.dead && after.leaving.stop && !before.leaving.stop && !is_silent(after.key))
    violation(after.name + " cannot stay any more as a dead one, and its host was heard of");
  if (!after.leaving.wanted || before.leaving.wanted || after.leaving.dead || asked_.contains(after.name)) return;
  const auto pool = disk_.pools.find(after.pool);
  if (pool == disk_.pools.end() || !pool->second.removing) violation(after.name + " leaves, and nobody has asked for it");
}

void EnlistOracle::check_forgotten(const enlist::Node& node) {
  const auto wrong = [&](const std::string& why) { violation("the coordinator forgets " + node.name + ", " + why); };
  if (!node.leaving.wanted || node.phase != enlist::Phase::kGone) return wrong("which has not left");
  const auto host = std::ranges::find(hosts_, node.key, [](const auto& one) { return one->fingerprint(); });
  if (node.report.left) {
    if (host != hosts_.end()) clean_.insert(host->get());
    return;
  }
  if (host != hosts_.end()) abandoned_[node.key] = node.name;
  if (!node.leaving.force && !node.revoked && !is_silent(node.key)) wrong("whose host is not clean");
}

// --- Jobs -------------------------------------------------------------------------------------------------------------

void EnlistOracle::check_loss(const SimJob& job, const JobLoss& loss) {
  using Cause = JobLoss::Cause;
  bool ours = false;
  switch (loss.cause) {
    case Cause::kDown:
    case Cause::kRecordGone:
    case Cause::kRequeued:
    case Cause::kCancelled:
      ours = loss.by == kOurs;
      break;
    case Cause::kPartitionGone:
      // Only the coordinator changes partitions. It is allowed to revert a pool file that slurmctld seems to refuse, while the
      // new pool has no node.
      ours = gone_pools_.contains(job.request.partition) || std::ranges::any_of(disk_.nodes, [&](const auto& entry) {
               return entry.second.pool == job.request.partition && !entry.second.confirmed.empty();
             });
      break;
    case Cause::kReconfigured:
      ours = !admin_reconfigures && job.started + kNews < reconfigured_;
      break;
    case Cause::kNodeGone:
      ours = std::ranges::any_of(job.request.required_nodes, [&](const std::string& node) {
        const auto deleted = deleted_.find(node);
        return deleted != deleted_.end() && job.submitted + kNews < deleted->second && !slurm_.nodes().contains(node);
      });
      break;
    case Cause::kSilence:
    case Cause::kNoSlurmd: {
      // After slurmd was stopped, a job can only start on the node if somebody resumes the node.
      const auto stopped = stopped_.find(loss.node);
      const auto changed = foreign_.find(loss.node);
      ours = stopped != stopped_.end() && !slurm_.slurmd_runs(loss.node) && job.started < stopped->second &&
             (changed == foreign_.end() || changed->second + kOld < stopped->second);
      break;
    }
    default:
      break;
  }
  if (ours) violation(fmt::format("job {} is {}: {}", job.id, to_string(loss.what), to_string(loss.cause)));
}

// --- The declared state -----------------------------------------------------------------------------------------------

std::string EnlistOracle::wrong_words(const EnlistHost& host, const enlist::Node& node, const SimNode& record) const {
  if (node.configuring.wanted) return "does not have its parameters yet";
  const auto wanted = words_.find(node.name);
  if (wanted != words_.end() && node.node_conf != wanted->second)
    return fmt::format("has the parameters \"{}\" in place of \"{}\"", node.node_conf, wanted->second);
  const auto pool = disk_.pools.find(node.pool);
  const std::string words =
      enlist::merged_conf(pool == disk_.pools.end() ? "" : pool->second.node_conf, node.node_conf).value_or("");
  const auto started = enlist::arguments_of(host.content(EnlistHost::kSlurmdDefaults));
  const auto conf = started ? std::ranges::find(*started, "--conf") : std::vector<std::string>::const_iterator();
  const std::string next = started && conf != started->end() ? *std::next(conf) : "";
  if (record.weight != enlist::weight_in(words) || enlist::weight_in(next) != record.weight)
    return fmt::format("has the weight {}, and {} after the next start", record.weight, enlist::weight_in(next));
  for (const std::string& feature : enlist::features_in(words)) {
    if (std::ranges::find(record.features, feature) == record.features.end()) return "does not have the feature " + feature;
    const auto later = enlist::features_in(next);
    if (std::ranges::find(later, feature) == later.end()) return "will not have the feature " + feature;
  }
  for (const std::string& feature : record.features) {
    const auto own = enlist::features_in(words);
    if (feature != node.pool && std::ranges::find(own, feature) == own.end()) return "still has the feature " + feature;
  }
  if (record.cpus != (enlist::has_word(words, "CPUs") ? 2 : slurm_.options().cpus))
    return fmt::format("has {} CPUs", record.cpus);
  return {};
}

std::string EnlistOracle::wrong_with(const EnlistHost& host) const {
  if (!host.enabled(EnlistHost::kAgentUnit)) return "has not joined";
  const auto own = std::ranges::find(disk_.nodes, host.fingerprint(), [](const auto& entry) { return entry.second.key; });
  if (own == disk_.nodes.end()) return "is not known to the coordinator";
  const enlist::Node& node = own->second;
  if (host.node() != node.name) return "runs no slurmd for node " + node.name;
  for (const auto& other : hosts_) {
    if (other.get() != &host && other->node() == node.name) return "shares its name with " + other->name();
  }
  const SimNode* record = slurm_.node(node.name);
  const std::string told = fmt::format(" (the coordinator says {}: {})", to_string(node.phase), node.message);
  if (record == nullptr) return "is not in Slurm as " + node.name + told;
  if (!record->partitions.contains(node.pool)) return "is not in its partition" + told;
  if (node.phase != enlist::Phase::kReady) return "is not ready" + told;
  if (const std::string wrong = wrong_words(host, node, *record); !wrong.empty()) return wrong + told;
  if (record->reason.starts_with(kGate) && record->drain) return "is behind the gate" + told;
  const bool restored = record->drain && !node.marks.reason.empty() && record->reason == node.marks.reason;
  const bool kept = restored || ((foreign_.contains(node.name) || record->own_drain) && (record->drain || record->down));
  if (!slurm_.usable(*record) && !kept) return "takes no jobs: " + record->reason + told;
  return {};
}

/// Returns what slurm-enlist has left on a host after the host has left; "": nothing.
std::string EnlistOracle::left_on(const EnlistHost& host) const {
  if (host.has_agent() || host.enabled(EnlistHost::kAgentUnit)) return "its agent";
  if (!host.node().empty() || host.enabled(EnlistHost::kSlurmdUnit)) return "slurmd";
  for (const char* file : {EnlistHost::kSlurmdDefaults, "/etc/systemd/system/slurmd.service", "/etc/slurm/slurm.key"}) {
    if (host.files.contains(file)) return file;
  }
  return {};
}

std::vector<std::string> EnlistOracle::unmet() const {
  std::vector<std::string> out;
  for (const std::string& name : leaving_) {
    if (const auto node = disk_.nodes.find(name); node != disk_.nodes.end())
      out.push_back(fmt::format("{} has not left (the coordinator says {}: {})", name, to_string(node->second.phase),
                                node->second.message));
  }
  for (const EnlistHost* host : clean_) {
    if (const std::string what = left_on(*host); !what.empty())
      out.push_back(host->name() + " has left, and still has " + what);
  }
  for (const auto& [name, node] : disk_.nodes) {
    const SimNode* record = slurm_.node(name);
    if (record != nullptr && !node.marks.reason.empty() && !record->drain && !record->down)
      out.push_back("the drain of " + name + " is forgotten: " + node.marks.reason);
  }
  for (const auto& [host, pool] : wanted_) {
    if (pool.empty()) continue;
    if (const std::string why = wrong_with(*host); !why.empty()) out.push_back(host->name() + " " + why);
  }
  for (const auto& [name, node] : slurm_.nodes()) {
    if (!node.cloud && !disk_.nodes.contains(name)) out.push_back("the record " + name + " has no owner");
  }
  for (const auto& [name, partition] : slurm_.partitions()) {
    // The pool file also has a marker partition, which belongs to no pool.
    if (!name.starts_with("slurm-enlist-") && !disk_.pools.contains(name))
      out.push_back("the partition " + name + " has no pool");
  }
  for (const auto& [name, pool] : disk_.pools) {
    if (pool.removing) out.push_back("pool " + name + " is not removed");
    if (!slurm_.partitions().contains(name)) out.push_back("Slurm has no partition " + name);
  }
  if (const auto problems = disk_.values.find(enlist::kProblemsValue); problems != disk_.values.end())
    out.push_back("pools have problems: " + core::canonical(problems->second));
  return out;
}

}  // namespace sim
