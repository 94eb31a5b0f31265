#include "sim/programs/enlist/oracle.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base64.hpp"
#include "enlist/coordinator/pools_acts.hpp"
#include "sim/programs/enlist/host.hpp"

namespace sim {
namespace {

/// So long a job is there before the coordinator must have seen it. It looks for jobs just before each reconfigure.
constexpr core::Duration kNews{2000};

/// Returns the part of the path behind `before`, up to the query; "" if it is not such a path.
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
  // The beginning of each token for slurmrestd.
  secrets_.insert({"eyJhbGciOi", "eyJ0eXAiOi"});
  slurm_.on_update = [this](const SimNode& node, const SimNodeUpdate& update, const std::string& user) {
    check_update(node, update, user);
  };
  slurm_.on_delete = [this](const SimNode& node, const std::vector<const SimJob*>&, const std::string& user) {
    if (user == kOurs) violation("the coordinator deletes the record of " + node.name);
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
  if (wanted == disk_.nodes.end()) return violation(host.name() + " starts slurmd, and the coordinator has no node for it");
  if (host.node() == wanted->first) violation(host.name() + " restarts a slurmd that runs as node " + host.node());
}

void EnlistOracle::check_update(const SimNode& node, const SimNodeUpdate& update, const std::string& user) {
  if (user != kOurs) {
    foreign_[node.name] = loop_.clock().mono();
    return;
  }
  const bool frees = update.state == "UNDRAIN" || update.state == "RESUME" || update.state == "IDLE";
  const bool own = node.reason.starts_with(kOwnReason);
  const bool holds = update.reason.value_or("").starts_with(kOwnReason);
  if (update.state == "DRAIN" && holds && (own || !node.drain)) return;
  // A new record gets the comment and the reason of the drain that its former one had.
  if (!update.state && (!update.reason || own)) return;
  if (!frees) return violation(fmt::format("the coordinator sets {} {}", node.name, update.state.value_or("something")));
  if (node.drain && own) return check_gate(node);
  const auto changed = foreign_.find(node.name);
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
      // Nobody else changes partitions. A file that slurmctld seems to refuse is taken back before any node is in it.
      ours = std::ranges::any_of(disk_.nodes, [&](const auto& entry) {
        return entry.second.pool == job.request.partition && !entry.second.confirmed.empty();
      });
      break;
    case Cause::kReconfigured:
      ours = !admin_reconfigures && job.started + kNews < reconfigured_;
      break;
    default:
      break;
  }
  if (ours) violation(fmt::format("job {} is {}: {}", job.id, to_string(loss.what), to_string(loss.cause)));
}

// --- The declared state -----------------------------------------------------------------------------------------------

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
  if (record->reason.starts_with(kGate) && record->drain) return "is behind the gate" + told;
  const bool restored = record->drain && !node.marks.reason.empty() && record->reason == node.marks.reason;
  const bool kept = restored || ((foreign_.contains(node.name) || record->own_drain) && (record->drain || record->down));
  if (!slurm_.usable(*record) && !kept) return "takes no jobs: " + record->reason + told;
  return {};
}

std::vector<std::string> EnlistOracle::unmet() const {
  std::vector<std::string> out;
  for (const auto& [host, pool] : wanted_) {
    if (pool.empty()) continue;
    if (const std::string why = wrong_with(*host); !why.empty()) out.push_back(host->name() + " " + why);
  }
  for (const auto& [name, node] : slurm_.nodes()) {
    if (!node.cloud && !disk_.nodes.contains(name)) out.push_back("the record " + name + " has no owner");
  }
  for (const auto& [name, pool] : disk_.pools) {
    if (!slurm_.partitions().contains(name)) out.push_back("Slurm has no partition " + name);
  }
  if (const auto problems = disk_.values.find(enlist::kProblemsValue); problems != disk_.values.end())
    out.push_back("pools have problems: " + core::canonical(problems->second));
  return out;
}

}  // namespace sim
