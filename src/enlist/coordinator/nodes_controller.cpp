#include "enlist/coordinator/nodes_controller.hpp"

#include <utility>

namespace enlist {

NodesController::NodesController(core::Loop& loop, Store& store, slurm::Clusters& clusters, slurm::ClusterKey cluster,
                                 std::function<void(const run::Key&)> wake,
                                 std::function<std::optional<std::size_t>()> max_node_count)
    : TypedController(plan_node),
      loop_(loop),
      store_(store),
      clusters_(clusters),
      cluster_(std::move(cluster)),
      wake_(std::move(wake)),
      max_node_count_(std::move(max_node_count)),
      began_(loop.clock().mono()) {}

void NodesController::start() {
  for (const auto& [name, node] : store_.contents().nodes) wake_({"", name});
}

void NodesController::heard(const std::string& node) {
  Seen& seen = seen_[node];
  const bool first = !seen.heard_at;
  seen.heard_at = loop_.clock().mono();
  const auto record = store_.contents().nodes.find(node);
  if (first || (record != store_.contents().nodes.end() && record->second.phase == Phase::kSilent)) wake_({"", node});
}

void NodesController::changed(const Changes& changes) {
  for (const auto& [name, node] : changes.nodes) wake_({"", name});
}

void NodesController::changed(const slurm::Change& change) {
  if (change.cluster != cluster_) return;
  if (change.health) return start();
  for (const std::string& name : change.nodes) {
    if (store_.contents().nodes.contains(name)) wake_({"", name});
  }
}

void NodesController::follow(Seen& seen, const Node& node, core::MonoTime now) {
  const Report& report = node.report;
  const bool confirmed =
      report.instance_id == node.confirmed && (node.phase == Phase::kEnlisted || node.phase == Phase::kReady);
  // With systemd a reload is another process, too, so Report::started is no beginning.
  const bool began = seen.instance_id != report.instance_id;
  const bool registered = !began && seen.registrations != report.registrations;
  seen.instance_id = report.instance_id;
  if (!seen.started_at || seen.started != report.started) seen.started_at = now;
  seen.started = report.started;
  seen.registrations = report.registrations;
  if (!report.running || (confirmed && !began)) {
    seen.running_since = seen.registered_at = std::nullopt;
    seen.registered = 0;
  } else if (began || !seen.running_since || (registered && node.phase == Phase::kLost)) {
    seen.running_since = now;
    seen.registered_at.reset();
    seen.registered = registered ? 1 : 0;
  } else if (registered) {
    seen.registered_at = now;
    ++seen.registered;
  }
}

std::shared_ptr<const NodeObserved> NodesController::observe_typed(const run::Key& key, run::Recorder&,
                                                                   const run::Observation& context) {
  auto out = std::make_shared<NodeObserved>(NodeObserved{.context = context, .cluster = cluster_});
  const auto found = store_.contents().nodes.find(key.name);
  if (found == store_.contents().nodes.end()) {
    seen_.erase(key.name);
    return out;
  }
  const Node& node = found->second;
  Seen& seen = seen_[key.name];
  follow(seen, node, context.mono);
  out->node = node;
  out->slurm = clusters_.snapshot(cluster_);
  out->running_since = seen.running_since;
  out->registered_at = seen.registered_at;
  out->registered = seen.registered;
  out->started_at = seen.started_at;
  out->heard_at = seen.heard_at;
  if (!out->heard_at && context.mono - began_ >= kSilentAfter) out->heard_at = began_;
  out->max_node_count = max_node_count_();
  return out;
}

}  // namespace enlist
