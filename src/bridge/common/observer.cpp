#include "bridge/common/observer.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "bridge/common/groups.hpp"
#include "bridge/common/names.hpp"
#include "bridge/common/states.hpp"
#include "bridge/common/wish.hpp"

namespace bridge {
namespace {

std::shared_ptr<const Settings> with_defaults(std::shared_ptr<const Settings> settings, const kube::StringMap& annotations) {
  const auto first = annotations.lower_bound(kAnnotationPrefix);
  if (first == annotations.end() || !first->first.starts_with(kAnnotationPrefix)) return settings;
  auto out = std::make_shared<Settings>(*settings);
  out->defaults = annotations;
  return out;
}

/// Reports whether most nodes are not ready. In this case, the network between the nodes and the API server has more likely
/// failed than the nodes, and Kubernetes evicts no pods either.
bool most_nodes_are_silent(const std::vector<KubeNodePtr>& nodes) {
  const auto silent = std::ranges::count_if(nodes, [](const KubeNodePtr& node) { return !node->ready; });
  return nodes.size() > 1 && 2 * static_cast<std::size_t>(silent) > nodes.size();
}

}  // namespace

bool vouches_for(const Settings& settings, const JobTable& table, const Pod& pod) {
  if (manages(settings, pod)) return true;
  return std::ranges::any_of(placed_for(pod), [&](const JobId& job) {
    const JobTable::Row* row = table.row(job.number);
    return row != nullptr && row->is_for(pod);
  });
}

std::vector<PodPtr> maybe_placed(const Caches& caches, const JobTable::Row& row) {
  const slurm::Job& job = *row.job;
  std::vector<PodPtr> out;
  if (phase_of(job) != JobPhase::kEnded || is_refused(job)) return out;
  for (const run::Key& key : row.keys) {
    // A pod of the group might have taken the place of a pod that the admin_comment of the job names.
    const bool group = is_group(key);
    for (const PodPtr& pod : group ? caches.pods.by_index(kIndexGroup, key.str()) : std::vector{caches.pods.find(key)}) {
      if (pod == nullptr || phase_of(*pod) != PodPhase::kWaiting || pod->meta.terminating()) continue;
      if (group || row.is_for(*pod)) out.push_back(pod);
    }
  }
  return out;
}

std::string NeverPlaced::key(const Pod& pod, const slurm::Job& job) {
  return placed_for_value(id_of(job)) + " " + pod.meta.uid;
}

std::optional<bool> was_placed(const plan::Facts& facts, const Pod& pod, const slurm::Job& job, core::WallTime now,
                               NeverPlaced& known) {
  if (known.contains(pod, job)) return false;
  if (!job.end || now - *job.end < kPlacingTakes) return true;
  const auto look = facts.find(unsure_fact(pod.meta.key()));
  if (look == facts.end()) return {};
  const core::Result<core::Json>& live = look->second.value;
  const bool may = live ? runs_for(*live, id_of(job)) : live.error().code != core::ErrorCode::kNotFound;
  if (!may) known.add(pod, job);
  return may;
}

Observer::Observer(slinky::Wiring& wiring, Settings given)
    : settings(std::make_shared<const Settings>(std::move(given))), caches(wiring), wiring_(wiring) {
  // The UID of the Namespace kube-system identifies the Kubernetes cluster.
  wiring.reads(kube::resources::kNamespace);
  caches.nodes.listen([this](const auto& before, const auto& after) {
    if (!before || !after || fits_differently(*before, *after)) hosts_ = nullptr;
  });
}

void Observer::fill(Facts& out, const run::Key& key, kube::Recorder& recorder) {
  out.key = key;
  out.settings = settings;
  const auto cluster = recorder.metadata(kube::resources::kNamespace, {"", "kube-system"});
  if (cluster.record) out.installation = cluster.record->meta.uid;
  if (out.installation.empty()) return;
  installation = out.installation;
  const auto space = recorder.metadata(kube::resources::kNamespace, {"", key.ns});
  if (space.presence == kube::Presence::kUnknown) return out.installation.clear();
  if (space.record) out.settings = with_defaults(settings, space.record->meta.annotations);
  out.snapshot = snapshot();
  out.slurm_now = out.context.now;
  if (out.snapshot != nullptr) out.slurm_now = out.snapshot->time_at(out.context.mono).value_or(out.context.now);
  table.read(out.snapshot);
  out.life = table.life();
  if (hosts_ == nullptr) hosts_ = std::make_shared<const Hosts>(hosts_of(caches.nodes.all()));
  out.hosts = hosts_;
  fits_.follow(hosts_, out.snapshot, out.installation);
}

void Observer::fill_fit(Facts& out, const PodPtr& pod) {
  if (out.snapshot != nullptr && out.snapshot->complete()) out.fit = fits_.of(pod, partitions_of(*pod, *out.settings));
}

NamedJob Observer::named(const plan::Observing& observing, const Facts& facts, const JobTable::Row& row) const {
  return {
      row.job, row.mark,
      slurm::OwnJob::of(observing, *facts.snapshot, settings->cluster, slurm::Owner::kBridge, facts.installation, row.job->id),
      row.wish};
}

Leftovers Observer::leftovers(const Facts& facts, const std::string& slurm_node, const slurm::Job& job) {
  Leftovers out;
  const auto host = facts.hosts->find(slurm_node);
  if (host == facts.hosts->end()) return out;
  for (const auto& pod : caches.pods.by_index(kIndexPlace, host->second->meta.name)) {
    const PodPhase phase = phase_of(*pod);
    if (phase != PodPhase::kBound && phase != PodPhase::kPlaced) continue;
    if (table.holds(*pod) || !vouches_for(*settings, table, *pod)) continue;
    const std::vector<JobId> placed = placed_for(*pod);
    if (std::ranges::find(placed, id_of(job)) == placed.end()) out.pods.push_back(pod->meta.key().str());
  }
  const JobTable::Row* of = table.row(job.id);
  for (const JobTable::Row* row : table.ended_on(slurm_node)) {
    if (row->mark.instance != facts.installation) continue;
    for (const PodPtr& pod : maybe_placed(caches, *row)) {
      // A pod of `job` need not wait for itself. If the pod was already placed, the patch that places it again fails.
      if (of != nullptr && of->is_for(*pod)) continue;
      const std::optional<bool> there = was_placed(facts.context.facts, *pod, *row->job, facts.slurm_now, never_placed_);
      if (!there)
        out.unsure.insert(pod->meta.key());
      else if (*there)
        out.pods.push_back(pod->meta.key().str());
    }
  }
  return out;
}

bool Observer::on_unready_node(const Pod& pod) const {
  const auto node = caches.nodes.find({"", pod.node_name});
  return node != nullptr && !node->ready;
}

bool Observer::on_silent_node(const Pod& pod) const {
  return on_unready_node(pod) && !most_nodes_are_silent(caches.nodes.all());
}

slinky::Keys Observer::changed(const slurm::Change& change) {
  std::set<run::Key> out;
  const auto add = [&](std::int64_t job) {
    if (const JobTable::Row* row = table.row(job)) out.insert(row->keys.begin(), row->keys.end());
  };
  std::ranges::for_each(change.jobs, add);
  table.read(change.now);
  std::ranges::for_each(change.jobs, add);
  return {out.begin(), out.end()};
}

bool fits_differently(const kube::SchedulingNodeRecord& before, const kube::SchedulingNodeRecord& after) {
  return before.unschedulable != after.unschedulable || before.taints != after.taints ||
         before.meta.labels != after.meta.labels || before.allocatable != after.allocatable ||
         before.meta.terminating() != after.meta.terminating();
}

bool places_changed(const slurm::Change& change) {
  if (change.partitions) return true;
  return std::ranges::any_of(change.nodes, [&](const std::string& name) {
    const slurm::Node* before = change.before->node(name);
    const slurm::Node* now = change.now->node(name);
    return before == nullptr || now == nullptr || before->partitions != now->partitions;
  });
}

std::string ending(const Pod& pod) {
  if (phase_of(pod) != PodPhase::kBound || !pod.meta.terminating()) return {};
  return "ending " + pod.meta.uid + " " + core::format_rfc3339(*pod.meta.deletion_timestamp);
}

void Since::begin(core::MonoTime now) {
  time_ = now;
  before_ = std::exchange(now_, {});
}

std::optional<core::MonoTime> Since::operator()(const std::string& what, bool holds) {
  if (!holds) return std::nullopt;
  const auto before = before_.find(what);
  return now_[what] = before == before_.end() ? time_ : before->second;
}

}  // namespace bridge
