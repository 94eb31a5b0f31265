#include "bridge/nodes/observe.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "bridge/common/held.hpp"
#include "bridge/common/names.hpp"
#include "slinky/names.hpp"
#include "slurm/own_job.hpp"

namespace bridge::nodes {
namespace {

/// How soon a node is looked at again that waits for its turn.
constexpr core::Duration kTurnAgain{30000};

/// Keeps the time at which `holds` became true.
void keep_since(std::optional<core::MonoTime>& since, bool holds, core::MonoTime now) {
  if (!holds) {
    since.reset();
  } else if (!since) {
    since = now;
  }
}

/// Returns the number of the job that the pod was placed for; 0 if there is none.
std::int64_t job_of(const kube::ObjectMeta& pod) {
  const std::string_view text = pod.label(kLabelJobId);
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() ? out : 0;
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
  out->fresh = out->snapshot->fresh(context.mono);
  if (const auto found = hosts().find(key.name); found != hosts().end()) out->hosts = found->second;
  if (const slurm::Node* node = out->node(); node != nullptr && is_ours(*node, out->installation)) {
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
  if (memory.held.empty() && !memory.absent_since && !memory.other_since && !memory.had_host) memory_.erase(key);
  return out;
}

void NodesController::observe_absence(const run::Observation& context, Observed& out, Memory& memory) const {
  const slurm::Node* node = out.node();
  keep_since(memory.absent_since, node == nullptr && out.host() != nullptr, context.mono);
  out.absent_since = memory.absent_since;
  if (node == nullptr || out.mark) {
    memory.had_host = false;
  } else if (out.host() != nullptr) {
    memory.had_host = true;
  } else if (slurm::held_by(node->reason, slurm::Owner::kBridge)) {
    // It was told once. If somebody frees the node, Slurm has it without Kubernetes.
    memory.had_host = false;
  }
  out.lost_host = memory.had_host && out.host() == nullptr;
}

/// A node that is taken from work by others keeps its record, because their word is in it. So does a node that a waiting job
/// names, because Slurm would end that job.
void NodesController::observe_resources(const run::Observation& context, Observed& out, Memory& memory) {
  const slurm::Node* node = out.node();
  const auto wish = out.mark && out.host() != nullptr && is_external(out.host()->meta)
                        ? std::optional(wish_of(*out.host(), *out.snapshot))
                        : std::nullopt;
  const std::string wanted = wish && *wish ? slurm::made_of(**wish) : "";
  const bool differs = !wanted.empty() && wanted != out.mark->made;
  if (wanted != memory.other) memory.other_since.reset();
  memory.other = wanted;
  keep_since(memory.other_since, differs, context.mono);
  const core::Duration waited = differs ? context.mono - *memory.other_since : core::Duration{0};
  const bool begun = differs && slurm::Holds::read(node->reason).why(slurm::Owner::kBridge) == kMadeAgain;
  const bool may = differs && !slurm::given_by_others(node->reason, slurm::Owner::kBridge) &&
                   !out.snapshot->awaited(node->name) &&
                   (begun || (out.host()->ready && !out.host()->unschedulable && !out.host()->meta.terminating()));
  const bool due = may && (begun || waited >= settings_->made_again);
  if (!due) {
    if (made_again_ == out.key) made_again_.reset();
  } else if (!made_again_ && (begun || !another_is_made_again(out))) {
    made_again_ = out.key;
  }
  out.make_again = due && made_again_ == out.key;
  if (differs && !out.make_again) out.look_again = std::max(settings_->made_again - waited, kTurnAgain);
}

void NodesController::observe_held(const run::Observation& context, Observed& out, Memory& memory) const {
  const slurm::Node* node = out.node();
  if (node == nullptr || out.host() == nullptr || node->state.has("EXTERNAL")) return memory.held.clear();
  const auto see = [&](std::int64_t job) { memory.held.insert_or_assign(job, context.mono); };
  // Those of an earlier process are held for a moment as well.
  for (const std::int64_t job : jobs_in(node->extra).value_or(std::set<std::int64_t>{})) memory.held.emplace(job, context.mono);
  std::set<std::int64_t> there;
  for (const auto& job : out.snapshot->jobs_on(node->name)) {
    const auto mark = slurm::mark_of(*job);
    if (mark && mark->owner == slurm::Owner::kBridge && mark->instance == out.installation) there.insert(job->id);
  }
  for (const auto& pod : caches_.pods.all()) {
    const bool here = (pod->node_name.empty() ? pod->pinned_to : pod->node_name) == out.host()->meta.name;
    const bool ended = pod->phase == "Succeeded" || pod->phase == "Failed";
    if (const std::int64_t job = here && !ended ? job_of(pod->meta) : 0; job != 0) there.insert(job);
  }
  std::ranges::for_each(there, see);
  std::erase_if(memory.held, [&](const auto& entry) {
    return !there.contains(entry.first) && out.fresh && context.mono - entry.second >= settings_->still_held;
  });
  out.held.emplace();
  for (const auto& [job, last] : memory.held) out.held->insert(job);
  out.holds_longer = out.held->size() > there.size();
}

bool NodesController::another_is_made_again(const Observed& out) const {
  return std::ranges::any_of(out.snapshot->nodes, [&](const auto& entry) {
    const slurm::Node& node = *entry.second;
    return node.name != out.key.name && is_ours(node, out.installation) && node.state.drains() &&
           slurm::Holds::read(node.reason).why(slurm::Owner::kBridge) == kMadeAgain;
  });
}

const Hosts& NodesController::hosts() {
  if (!hosts_) hosts_ = hosts_of(caches_.nodes.all());
  return *hosts_;
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
