#include "sim/programs/bridge/oracle.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bridge/common/names.hpp"

namespace sim {
namespace {

using core::Json;
namespace res = kube::resources;

/// The user of the bridge in Slurm.
constexpr const char* kUser = "slurm";
constexpr const char* kOwnReason = "slurm-bridge:";

std::string text(const Json& object, std::initializer_list<std::string_view> path) {
  return core::get_string(object, path);
}

std::string name_of(const Json& pod) {
  return text(pod, {"metadata", "namespace"}) + "/" + text(pod, {"metadata", "name"});
}

bool gated(const Json& pod) {
  const Json* gates = core::find(pod, {"spec", "schedulingGates"});
  return gates != nullptr && std::ranges::any_of(*gates, [](const Json& gate) { return gate["name"] == bridge::kGate; });
}

/// Returns the job that the pod was placed for, as "NUMBER.SUBMITTED"; "" if the pod was not placed.
std::string record_of(const Json& pod) {
  const Json* all = core::find(pod, {"spec", "tolerations"});
  for (const Json& one : all == nullptr || gated(pod) ? Json::array() : *all) {
    if (one.value("key", "") == bridge::kTolerationPlacedFor) return one.value("value", "");
  }
  return "";
}

std::string record_of(const SimJob& job) {
  return fmt::format("{}.{}", job.id, job.submitted_at);
}

std::string reason(const Json& pod, std::string_view type) {
  const Json* all = core::find(pod, {"status", "conditions"});
  for (const Json& one : all == nullptr ? Json::array() : *all) {
    if (one["type"] == type) return one.value("reason", "");
  }
  return "";
}

/// Returns the node of each term of the pod's required node affinity; "" for a term that does not pin the pod to one node.
std::set<std::string> pins_of(const Json& pod) {
  std::set<std::string> out;
  const Json* terms = core::find(
      pod, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
  if (terms == nullptr) return {""};
  for (const Json& term : *terms) {
    std::string node;
    for (const Json& field : term.value("matchFields", Json::array())) {
      if (field["key"] == "metadata.name" && field["operator"] == "In" && field["values"].size() == 1)
        node = field["values"][0];
    }
    out.insert(node);
  }
  return out;
}

bool condition(const Json& pod, std::string_view type) {
  const Json* all = core::find(pod, {"status", "conditions"});
  return all != nullptr &&
         std::ranges::any_of(*all, [&](const Json& one) { return one["type"] == type && one["status"] == "True"; });
}

bool in_queue(const SimJob& job) {
  using enum SimJob::State;
  return job.state == kPending || job.state == kRunning || job.state == kSuspended;
}

std::vector<std::string> split_ids(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    out.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return out;
}

}  // namespace

BridgeOracle::BridgeOracle(Oracles& all, core::Loop& loop, KubeApi& api, SimSlurm& slurm, std::string installation)
    : all_(all), loop_(loop), api_(api), slurm_(slurm), installation_(std::move(installation)) {
  all_.add(*this);
  api_.store().listen([this](const std::string& table, const ChangePtr& change) {
    if (table == "pods" && change->before && change->type == Change::Type::kModified)
      changed(change->before->body, change->object->body);
  });
  slurm_.on_update = [this](const SimNode& node, const SimNodeUpdate& update, const std::string& user) {
    check_node(node, update, user);
  };
  slurm_.on_delete = [this](const SimNode& node, const std::vector<const SimJob*>& jobs, const std::string& user) {
    check_deletion(node, jobs, user);
  };
}

bool BridgeOracle::is_ours(const SimJob& job) const {
  if (!job.request.external) return false;
  const auto comment = core::parse_json(job.request.admin_comment);
  return comment && text(*comment, {"owner"}) == "slurm-bridge" && text(*comment, {"instance"}) == installation_;
}

/// Returns the job that the pod was placed for. Null: Slurm has no such job, or the pod was not placed.
const SimJob* BridgeOracle::job_of(const Json& pod) const {
  const std::string record = record_of(pod);
  const auto found = slurm_.jobs().find(std::strtoll(record.c_str(), nullptr, 10));
  return found == slurm_.jobs().end() || record_of(found->second) != record ? nullptr : &found->second;
}

void BridgeOracle::state_lost() {
  for (const auto& [id, job] : slurm_.jobs()) {
    lost_.insert(record_of(job));
    if (in_queue(job)) lost_alive_.insert(record_of(job));
  }
}

bool BridgeOracle::is_stranded(const Json& pod) const {
  return lost_.contains(record_of(pod)) && !ended(pod);
}

std::vector<std::string> BridgeOracle::stranded() const {
  std::vector<std::string> out;
  for (const auto& [key, stored] : api_.store().all("pods")) {
    if (is_stranded(stored->body)) out.push_back(text(stored->body, {"metadata", "name"}));
  }
  return out;
}

std::string BridgeOracle::stranded_on(const std::string& node) const {
  for (const auto& [key, stored] : api_.store().all("pods")) {
    if (is_stranded(stored->body) && text(stored->body, {"spec", "nodeName"}) == node) return key.str();
  }
  return "";
}

/// Returns the uids of the pods that the job is for.
std::set<std::string> BridgeOracle::pods_of(const SimJob& job) {
  std::set<std::string> out;
  const Json comment = core::parse_json(job.request.admin_comment).value_or(Json::object());
  for (const Json& pod : comment.value("pods", Json::array())) out.insert(text(pod, {"uid"}));
  return out;
}

/// Reports whether the job was submitted for the pod, or for its group.
bool BridgeOracle::is_for(const SimJob& job, const Json& pod) {
  if (pods_of(job).contains(text(pod, {"metadata", "uid"}))) return true;
  const Json comment = core::parse_json(job.request.admin_comment).value_or(Json::object());
  const std::string group = text(pod, {"metadata", "labels", bridge::kLabelPodGroup});
  return !group.empty() && text(comment, {"group", "name"}) == "podgroup/" + group &&
         text(comment, {"group", "ns"}) == text(pod, {"metadata", "namespace"});
}

// --- What the bridge does to Slurm ------------------------------------------------------------------------------------

void BridgeOracle::request(const net::HttpRequest& request) {
  if (request.method == "GET") return;
  constexpr std::string_view kRoot = "/slurm/";
  std::string_view path = request.target;
  path = path.substr(0, path.find('?'));
  if (!path.starts_with(kRoot)) return;
  path.remove_prefix(std::min(path.find('/', kRoot.size()) + 1, path.size()));
  while (path.ends_with('/')) path.remove_suffix(1);
  const Json body = core::parse_json(request.body).value_or(Json::object());
  if (path == "job/submit") return;
  if (path == "new/node") return check_creation(text(body, {"node_conf"}));
  if (path.starts_with("job/")) {
    const std::string_view ids = path.substr(4);
    for (const std::string& id : split_ids(ids)) check_job(id, request.method == "DELETE" ? "cancels" : "changes");
  } else if (path == "jobs" || path == "jobs/requeue") {
    for (const Json& id : body.value("jobs", Json::array())) check_job(id.get<std::string>(), "ends");
  } else if (path.starts_with("reservation")) {
    violation("the bridge writes a reservation: " + std::string(path));
  }
}

void BridgeOracle::check_job(const std::string& id, const std::string& what) {
  const auto found = slurm_.jobs().find(std::strtoll(id.c_str(), nullptr, 10));
  if (found == slurm_.jobs().end() || is_ours(found->second)) return;
  violation(fmt::format("the bridge {} job {}, which is not its own: {}", what, id, found->second.request.admin_comment));
}

void BridgeOracle::check_node(const SimNode& node, const SimNodeUpdate& update, const std::string& user) {
  if (user != kUser) return;
  check_features(node, update);
  const bool held = node.drain || node.down;
  const bool own = node.reason.find(kOwnReason) != std::string::npos;
  const std::string state = update.state.value_or("");
  if (state == "DOWN") violation("the bridge sets " + node.name + " DOWN, which ends its jobs");
  const bool frees = state == "UNDRAIN" || state == "RESUME" || state == "IDLE";
  if (frees && held && !own) violation("the bridge frees " + node.name + ", which somebody else holds: " + node.reason);
  const bool forgets = update.reason && held && !node.reason.empty() && !own && !node.reason.starts_with("Not responding") &&
                       update.reason->find(node.reason) == std::string::npos && !frees;
  if (forgets) violation("the bridge replaces the reason of " + node.name + ": " + node.reason);
}

// --- What the bridge does to pods -------------------------------------------------------------------------------------

void BridgeOracle::changed(const Json& before, const Json& after) {
  const std::string uid = text(after, {"metadata", "uid"});
  if (gated(before) && !gated(after) && !freed_.contains(uid)) placed(after);
  if (!condition(after, bridge::kConditionEnded) || condition(before, bridge::kConditionEnded)) return;
  // The bridge has ended the pod. For these reasons, it may do so without noticing the loss: the job's end was near.
  static const std::set<std::string> kWithoutLoss{"NotBound", "TimedOut", "Preempted"};
  if (lost_alive_.contains(record_of(after)) && !kWithoutLoss.contains(reason(after, bridge::kConditionEnded)))
    violation(name_of(after) + " is ended, but slurmctld has only lost its job");
  bool refused = false;
  for (const auto& [id, job] : slurm_.jobs()) {
    // Searches for the uid first, because parsing the comment of each job would take long in a large cluster.
    if (job.request.admin_comment.find(uid) == std::string::npos || !is_ours(job) || !pods_of(job).contains(uid)) continue;
    if (job.state != SimJob::State::kFailed) return;
    refused = true;
  }
  if (refused) violation(name_of(after) + " is ended, but Slurm only refused its job");
}

void BridgeOracle::placed(const Json& pod) {
  const std::string name = name_of(pod);
  const std::string id = record_of(pod);
  if (lost_.contains(id)) return;
  const SimJob* its_job = job_of(pod);
  if (its_job == nullptr) return violation(fmt::format("{} is placed for job {}, which does not exist", name, id));
  const SimJob& job = *its_job;
  if (!is_ours(job) || !is_for(job, pod))
    return violation(fmt::format("{} is placed for job {}, which is not its own", name, id));
  const std::set<std::string> pins = pins_of(pod);
  if (pins.size() != 1 || pins.contains("")) return violation(name + " is placed, and not pinned to one node in each term");
  const std::string& node = *pins.begin();
  if (std::ranges::find(job.nodes, node) == job.nodes.end())
    return violation(fmt::format("{} is placed on {}, which job {} does not hold", name, node, id));
  if (!holds_back(node, job.id))
    violation(fmt::format("{} is placed beside the slurmd of {}, which does not list job {}", name, node, id));
  const std::int64_t news = kNews.count() / 1000;
  if (job.state != SimJob::State::kRunning && (job.state == SimJob::State::kPending || job.end + news < slurm_.now_seconds()))
    return violation(fmt::format("{} is placed for job {}, which is {}", name, id, to_string(job.state)));
  // Slurm frees the nodes of an external job before the job's pod is gone, so another pod possibly still runs on the node.
  for (const auto& [key, stored] : api_.store().all("pods")) {
    const Json& other = stored->body;
    const bool there = text(other, {"spec", "nodeName"}) == node ||
                       (text(other, {"spec", "nodeName"}).empty() && !gated(other) && pins_of(other) == pins);
    if (!there || record_of(other).empty() || ended(other) ||
        text(other, {"metadata", "uid"}) == text(pod, {"metadata", "uid"}))
      continue;
    if (record_of(other) == id) {
      violation(fmt::format("{} is placed on {}, which {} has in their job {}", name, node, name_of(other), id));
      continue;
    }
    const SimJob* its = job_of(other);
    if (its != nullptr && (its->holds(node) || its->end + news >= slurm_.now_seconds())) continue;
    violation(fmt::format("{} is placed on {}, where {} still runs without its job", name, node, name_of(other)));
  }
}

void BridgeOracle::check_held() const {
  for (const auto& [key, stored] : api_.store().all("pods")) {
    const Json& pod = stored->body;
    const std::string node = text(pod, {"spec", "nodeName"}), record = record_of(pod);
    const std::int64_t job = std::strtoll(record.c_str(), nullptr, 10);
    if (job == 0 || lost_.contains(record) || node.empty() || ended(pod) || holds_back(node, job)) continue;
    all_.violation(fmt::format("{} runs beside the slurmd of {}, which does not list job {}", key.str(), node, job));
  }
}

// --- What must not last -----------------------------------------------------------------------------------------------

void BridgeOracle::wrong_pods(Wrong& out) const {
  std::map<std::string, std::pair<int, int>> gangs;  // By job: how many pods are placed, and how many wait.
  for (const auto& [key, stored] : api_.store().all("pods")) {
    const Json& pod = stored->body;
    const std::string uid = text(pod, {"metadata", "uid"});
    if (ended(pod)) continue;
    const bool waits = gated(pod) && !terminating(pod);
    for (const auto& [id, job] : slurm_.jobs()) {
      if (!waits || job.state != SimJob::State::kRunning || !is_ours(job) || !pods_of(job).contains(uid)) continue;
      ++gangs[record_of(job)].second;
      if (std::ranges::any_of(job.nodes, [&](const std::string& node) { return !stranded_on(node).empty(); })) continue;
      out["gate " + uid] = fmt::format("{} waits, though its job {} runs", key.str(), id);
    }
    const std::string id = record_of(pod);
    if (id.empty() || is_stranded(pod)) continue;
    ++gangs[id].first;
    const std::string node = text(pod, {"spec", "nodeName"});
    const Json* kube_node = api_.peek(res::kNode, {"", node});
    // Nobody can end a pod on a Kubernetes node that is gone or not ready.
    if (kube_node == nullptr || !is_ready(*kube_node)) continue;
    const SimJob* job = job_of(pod);
    if (job == nullptr || !job->holds(node))
      out["pod " + uid] = fmt::format("{} runs on {} without its job {}", key.str(), node, id);
  }
  for (const auto& [id, counts] : gangs) {
    if (counts.first > 0 && counts.second > 0)
      out[fmt::format("gang {}", id)] =
          fmt::format("{} pods of job {} are placed, and {} wait", counts.first, id, counts.second);
  }
}

void BridgeOracle::wrong_jobs(Wrong& out) const {
  std::set<std::string> needed;  // Pods by uid, and the jobs that they were placed for.
  for (const auto& [key, stored] : api_.store().all("pods")) {
    if (!ended(stored->body)) needed.insert({text(stored->body, {"metadata", "uid"}), record_of(stored->body)});
  }
  std::map<std::string, std::int64_t> first;
  for (const auto& [id, job] : slurm_.jobs()) {
    if (!in_queue(job) || !is_ours(job)) continue;
    const std::set<std::string> pods = pods_of(job);
    if (!needed.contains(record_of(job)) &&
        std::ranges::none_of(pods, [&](const std::string& uid) { return needed.contains(uid); }))
      out[fmt::format("job {}", id)] = fmt::format("job {} is {} without a pod", id, to_string(job.state));
    for (const std::string& uid : pods) {
      const auto [other, is_first] = first.emplace(uid, id);
      if (!is_first) out["two " + uid] = fmt::format("jobs {} and {} are for one pod", other->second, id);
    }
  }
}

BridgeOracle::Wrong BridgeOracle::wrong() const {
  Wrong out;
  wrong_pods(out);
  wrong_jobs(out);
  wrong_nodes(out);
  return out;
}

void BridgeOracle::look(bool fair) {
  const core::MonoTime now = loop_.clock().mono();
  const core::Duration passed = looked_ ? now - *looked_ : core::Duration{0};
  looked_ = now;
  check_held();
  const Wrong found = wrong();
  std::erase_if(lasts_, [&](const auto& entry) { return !found.contains(entry.first); });
  for (const auto& [about, why] : found) {
    core::Duration& lasts = lasts_[about];
    if (fair) lasts = lasts + passed;
    if (lasts <= kLimit) continue;
    violation(fmt::format("for more than {} s: {}", kLimit.count() / 1000, why));
    lasts = core::Duration{0};
  }
}

std::vector<std::string> BridgeOracle::unmet() const {
  std::vector<std::string> out;
  for (const auto& [about, why] : wrong()) out.push_back(why);
  return out;
}

}  // namespace sim
