#include "bridge/nodes/observe.hpp"

#include <algorithm>
#include <array>

#include "bridge/common/hosts.hpp"
#include "bridge/common/names.hpp"
#include "bridge/common/states.hpp"
#include "bridge/nodes/own_drains.hpp"
#include "slinky/names.hpp"
#include "slurm/own_job.hpp"

namespace bridge::nodes {
namespace {

/// The time between two checks of a node that waits because another node is being recreated.
constexpr core::Duration kTurnAgain{30000};
/// The time between two checks of a node to which Slurm starts no jobs until the node is recreated.
constexpr core::Duration kUnansweredAgain{5000};

/// Sets `since` to the time when `holds` became true; resets it if `holds` is false.
void keep_since(std::optional<core::MonoTime>& since, bool holds, core::MonoTime now) {
  if (!holds) {
    since.reset();
  } else if (!since) {
    since = now;
  }
}

bool is_ours(const slurm::Node& node, const std::string& installation) {
  const auto mark = slurm::mark_of(node);
  return mark && mark->owner == slurm::Owner::kBridge && mark->instance == installation;
}

}  // namespace

std::shared_ptr<const Observed> NodesController::observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                               const run::Observation& context) {
  auto out = std::make_shared<Observed>();
  out->context = context;
  out->key = key;
  out->settings = settings_;
  const auto cluster = recorder.metadata(kube::resources::kNamespace, {"", "kube-system"});
  if (cluster.record) out->installation = cluster.record->meta.uid;
  out->snapshot = wiring_.snapshot(settings_->cluster);
  if (out->installation.empty() || out->snapshot == nullptr) return out;
  installation_ = out->installation;
  out->fresh = out->snapshot->fresh(context.mono);
  if (const auto found = hosts().find(key.name); found != hosts().end()) out->hosts = found->second;
  const slurm::Node* node = out->node();
  if (node != nullptr) out->other_cluster = other_cluster_of(*node, out->installation);
  if (node != nullptr && is_ours(*node, out->installation)) {
    out->mark = slurm::mark_of(*node);
    out->drained = slurm::OwnDrained::of(context.observing, *out->snapshot, {settings_->cluster, key.name},
                                         slurm::Owner::kBridge, out->installation);
  }
  if (out->host() != nullptr) out->slurm_pod = slurm_pod_on(out->host()->meta.name);
  if (!out->snapshot->complete()) return out;
  Memory& memory = memory_[key];
  observe_absence(context, *out, memory);
  observe_resources(context, *out, memory);
  observe_held(context, *out, memory);
  if (memory.held.empty() && !memory.absent_since && !memory.other_since && !memory.unanswered_since && !memory.had_host)
    memory_.erase(key);
  return out;
}

void NodesController::observe_absence(const run::Observation& context, Observed& out, Memory& memory) const {
  const slurm::Node* node = out.node();
  keep_since(memory.absent_since, node == nullptr && out.host() != nullptr, context.mono);
  out.absent_since = memory.absent_since;
  if (node == nullptr || out.mark || !out.other_cluster.empty()) {
    memory.had_host = false;
  } else if (out.host() != nullptr) {
    memory.had_host = true;
  } else if (own_hold(*node, out.installation)) {
    // The Slurm node is drained now. If somebody removes the drain, the bridge does not drain the node again.
    memory.had_host = false;
  }
  out.lost_host = memory.had_host && out.host() == nullptr;
}

/// Decides whether the Slurm node is recreated. The cause is that the Kubernetes node now has other resources, or that Slurm
/// waits for an answer, which no external node gives. A node that others drained or set DOWN is not recreated, because a new
/// record would lose that state. A node that a waiting job names is not recreated either, because Slurm would end the job.
/// While Slurm waits for an answer, it starts no jobs on the node, so the node is drained only when no job holds it.
void NodesController::observe_resources(const run::Observation& context, Observed& out, Memory& memory) {
  const slurm::Node* node = out.node();
  const auto wish = out.mark && out.host() != nullptr && is_external(out.host()->meta)
                        ? std::optional(wish_of(*out.host(), *out.snapshot))
                        : std::nullopt;
  const std::string wanted = wish && *wish ? slurm::made_of(**wish) : "";
  out.other_resources = !wanted.empty() && wanted != out.mark->made;
  if (wanted != memory.other) memory.other_since.reset();
  memory.other = wanted;
  keep_since(memory.other_since, out.other_resources, context.mono);
  const auto hold = node == nullptr ? std::nullopt : slurm::Holds::read(node->reason).why(slurm::Owner::kBridge);
  const bool serves =
      node != nullptr && node->state.base != "DOWN" && !node->state.has("FAIL") && (hold || !node->state.drains());
  const bool unanswered = !wanted.empty() && serves && is_unanswered(*node);
  keep_since(memory.unanswered_since, unanswered, context.mono);

  const bool begun = (out.other_resources || unanswered) && node->state.drains() && (hold == kMadeAgain || hold == kUnanswered);
  const std::string why(begun                 ? std::string_view(*hold)
                        : unanswered          ? kUnanswered
                        : out.other_resources ? kMadeAgain
                                              : std::string_view());
  const bool waits = why == kUnanswered;
  const auto since = waits ? memory.unanswered_since : memory.other_since;
  const core::Duration waited = since ? context.mono - *since : core::Duration{0};
  const core::Duration limit = waits ? settings_->unanswered : settings_->made_again;
  const bool may = !why.empty() && !slurm::given_by_others(node->reason, slurm::Owner::kBridge) &&
                   !out.snapshot->awaited(node->name) &&
                   (begun || (out.host()->ready && !out.host()->unschedulable && !out.host()->meta.terminating()));
  const bool unheld = begun || !waits || out.snapshot->jobs_on(node->name).empty();
  const bool due = may && unheld && (begun || waited >= limit);
  std::erase_if(made_again_, [&](const auto& one) { return one.second == out.key && !(due && one.first == why); });
  if (due && !made_again_.contains(why) && (begun || !another_is_made_again(out, why))) made_again_.emplace(why, out.key);
  const auto turn = made_again_.find(why);
  if (due && turn != made_again_.end() && turn->second == out.key) {
    out.make_again = why;
  } else if (!why.empty()) {
    out.look_again = std::max(limit - waited, waits && (due || waited < limit) ? kUnansweredAgain : kTurnAgain);
  }
}

void NodesController::observe_held(const run::Observation& context, Observed& out, Memory& memory) {
  const slurm::Node* node = out.node();
  if (node == nullptr || !out.other_cluster.empty()) return memory.held.clear();
  if (out.host() == nullptr && !lists_jobs(*node)) return memory.held.clear();
  const HeldJobs listed = held_in(node->extra).value_or(HeldJobs{});
  const std::set<std::int64_t> there = jobs_there(out, listed);
  out.in_use = !there.empty();
  if (node->state.has("EXTERNAL")) return memory.held.clear();
  // The jobs that an earlier process listed also stay in the list for Settings::still_held.
  for (const std::int64_t job : listed.jobs) memory.held.try_emplace(job);
  for (const std::int64_t job : there) memory.held.try_emplace(job);
  const core::WallTime now = out.snapshot->time_at(context.mono).value_or(context.now);
  const auto may_run = [&](std::int64_t job) {
    const JobTable::Row* row = table_.row(job);
    if (row == nullptr || row->mark.instance != out.installation) return false;
    bool may = false;
    for (const PodPtr& pod : maybe_placed(caches_, *row)) {
      const std::optional<bool> runs = was_placed(context.facts, *pod, *row->job, now, never_placed_);
      if (!runs) out.unsure.insert(pod->meta.key());
      may = may || runs.value_or(true);
    }
    return may;
  };
  for (auto& [job, gone_since] : memory.held) keep_since(gone_since, !there.contains(job) && !may_run(job), context.mono);
  std::erase_if(memory.held, [&](const auto& entry) {
    return entry.second && out.fresh && context.mono - *entry.second >= settings_->still_held;
  });
  out.held.emplace();
  for (const auto& [job, gone_since] : memory.held) out.held->insert(job);
  out.holds_longer = out.held->size() > there.size();
}

std::set<std::int64_t> NodesController::jobs_there(const Observed& out, const HeldJobs& listed) {
  std::set<std::int64_t> there;
  table_.read(out.snapshot);
  for (const auto& job : out.snapshot->jobs_on(out.key.name)) {
    const JobTable::Row* row = table_.row(job->id);
    if (row != nullptr && row->mark.instance == out.installation) there.insert(job->id);
  }
  const auto add = [&](const Pod& pod) {
    const bool counts = phase_of(pod) != PodPhase::kEnded && vouches_for(settings_->pods, table_, pod);
    for (const JobId& job : placed_for(pod)) {
      if (counts && (out.host() != nullptr || listed.jobs.contains(job.number))) there.insert(job.number);
    }
  };
  if (out.host() != nullptr) {
    for (const auto& pod : caches_.pods.by_index(kIndexPlace, out.host()->meta.name)) add(*pod);
    return there;
  }
  // Without a Kubernetes node of this name, it is unknown which pods run on the node. So all pods of the listed jobs count.
  for (const std::int64_t job : listed.jobs) {
    for (const auto& pod : caches_.pods.by_index(kIndexJob, std::to_string(job))) add(*pod);
  }
  return there;
}

bool NodesController::lists_jobs(const slurm::Node& node) {
  const auto listed = node.state.has("EXTERNAL") ? std::nullopt : held_in(node.extra);
  if (!listed || listed->jobs.empty()) return false;
  if (listed->cluster.empty()) return hosts().contains(node.name);
  return installation_.empty() || listed->cluster == installation_;
}

bool NodesController::is_left(const slurm::Node& node) {
  const bool drained = own_hold(node, installation_) && hosts().contains(node.name);
  return is_ours(node, installation_) || drained || lists_jobs(node);
}

bool NodesController::another_is_made_again(const Observed& out, std::string_view why) const {
  return std::ranges::any_of(out.snapshot->nodes, [&](const auto& entry) {
    const slurm::Node& node = *entry.second;
    return node.name != out.key.name && is_ours(node, out.installation) && node.state.drains() &&
           slurm::Holds::read(node.reason).why(slurm::Owner::kBridge) == why;
  });
}

const Hosts& NodesController::hosts() {
  if (!hosts_) hosts_ = hosts_of(caches_.nodes.all());
  return *hosts_;
}

void NodesController::follow_host(const HostPtr& before, const HostPtr& after) {
  if (!hosts_) return;
  const bool stays = before && after && slurm_name_of(before->meta) == slurm_name_of(after->meta);
  if (!stays) return hosts_.reset();
  // Compare names: a relist replaces the records of unchanged nodes without calling this listener.
  const auto same = [&](const HostPtr& host) { return host->meta.name == after->meta.name; };
  std::ranges::replace_if(hosts_->at(slurm_name_of(after->meta)), same, after);
}

std::string NodesController::slurm_pod_on(const std::string& kube_node) const {
  constexpr std::array kApps{slinky::kAppController, slinky::kAppBackup,     slinky::kAppRestApi,  slinky::kAppWorker,
                             slinky::kAppLogin,      slinky::kAppAccounting, slinky::kAppDatabase, kProgram};
  for (const auto& pod : caches_.pods.by_index(slinky::kIndexNode, kube_node)) {
    const bool ended = pod->phase == "Succeeded" || pod->phase == "Failed";
    if (!ended && std::ranges::find(kApps, pod->meta.label("app.kubernetes.io/name")) != kApps.end())
      return pod->meta.key().str();
  }
  return {};
}

}  // namespace bridge::nodes
