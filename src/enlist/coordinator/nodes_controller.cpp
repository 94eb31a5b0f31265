#include "enlist/coordinator/nodes_controller.hpp"

#include <utility>

#include "enlist/coordinator/departed.hpp"

namespace enlist {

NodesController::NodesController(core::Loop& loop, Store& store, slurm::Clusters& clusters, slurm::ClusterKey cluster,
                                 std::function<void(const run::Key&)> wake,
                                 std::function<std::optional<std::size_t>()> max_node_count,
                                 std::optional<core::Duration> forget_dead_after)
    : TypedController(plan_node),
      loop_(loop),
      store_(store),
      clusters_(clusters),
      cluster_(std::move(cluster)),
      wake_(std::move(wake)),
      max_node_count_(std::move(max_node_count)),
      forget_dead_after_(forget_dead_after) {}

NodesController::Seen& NodesController::seen_of(const std::string& node) {
  return seen_.try_emplace(node, Seen{.since = loop_.clock().mono()}).first->second;
}

void NodesController::start() {
  for (const auto& [name, node] : store_.contents().nodes) wake_({"", name});
  for (const std::string& name : departed_nodes(store_.contents().values)) wake_({"", name});
}

bool NodesController::reports(const Node& node, const Report& report) {
  Boots& boots = seen_of(node.name).boots;
  const core::MonoTime now = loop_.clock().mono();
  const bool before = boots.two_hosts(now).empty();
  // The stored report may come from another host, which reported to an earlier process of the coordinator.
  if (boots.empty()) boots.heard(node.report.boot_id, node.report.hostname, now);
  boots.heard(report.boot_id, report.hostname, now);
  const bool one = boots.two_hosts(now).empty();
  if (one != before) wake_({"", node.name});
  return one;
}

void NodesController::heard(const std::string& node) {
  Seen& seen = seen_of(node);
  const bool first = !seen.heard_at;
  seen.heard_at = loop_.clock().mono();
  const auto record = store_.contents().nodes.find(node);
  const bool leaves =
      record != store_.contents().nodes.end() && (record->second.leaving.wanted || record->second.configuring.restarts());
  if (first || leaves || (record != store_.contents().nodes.end() && record->second.phase == Phase::kSilent)) wake_({"", node});
}

std::optional<core::MonoTime> NodesController::heard_at(const std::string& node) const {
  const auto seen = seen_.find(node);
  return seen == seen_.end() ? std::nullopt : seen->second.heard_at;
}

void NodesController::changed(const Changes& changes) {
  for (const auto& [name, node] : changes.nodes) wake_({"", name});
}

void NodesController::changed(const slurm::Change& change) {
  if (change.cluster != cluster_) return;
  if (change.health) return start();
  for (const std::string& name : change.nodes) {
    const bool known = store_.contents().nodes.contains(name) || store_.contents().values.contains(departed_value(name));
    if (known) wake_({"", name});
  }
}

void NodesController::follow(Seen& seen, const Node& node, core::MonoTime now) {
  const Report& report = node.report;
  const bool confirmed =
      report.instance_id == node.confirmed && (node.phase == Phase::kEnlisted || node.phase == Phase::kReady);
  // A new Report::started does not count as a start of slurmd, because with systemd a reload also changes the process.
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
    observe_departed(key.name, *out);
    return out;
  }
  const Node& node = found->second;
  Seen& seen = seen_of(key.name);
  follow(seen, node, context.mono);
  seen.absent_since.reset();
  out->node = node;
  if (const auto pool = store_.contents().pools.find(node.pool); pool != store_.contents().pools.end())
    out->pool_conf = pool->second.node_conf;
  out->slurm = clusters_.snapshot(cluster_);
  out->running_since = seen.running_since;
  out->registered_at = seen.registered_at;
  out->registered = seen.registered;
  out->started_at = seen.started_at;
  out->heard_at = seen.heard_at;
  if (!out->heard_at && context.mono - seen.since >= kSilentAfter) out->heard_at = seen.since;
  out->max_node_count = max_node_count_();
  out->forget_dead_after = forget_dead_after_;
  out->two_hosts = seen.boots.two_hosts(context.mono);
  observe_leave(seen, *out);
  return out;
}

void NodesController::observe_departed(const std::string& node, NodeObserved& out) {
  out.departed = departed_node(store_.contents().values, node);
  if (!out.departed) {
    seen_.erase(node);
    return;
  }
  out.slurm = clusters_.snapshot(cluster_);
  Seen& seen = seen_of(node);
  if (out.slurm && out.slurm->complete()) {
    const slurm::Node* record = out.slurm->node(node);
    const bool has_it = record != nullptr && is_of(*record, *out.departed);
    if (has_it) seen.absent_since.reset();
    if (!has_it && !seen.absent_since) seen.absent_since = out.slurm->requested_at;
  }
  out.absent_since = seen.absent_since;
}

void NodesController::observe_leave(Seen& seen, NodeObserved& out) {
  const Node& node = *out.node;
  const std::string asked = node.leaving.wanted ? "leave" : node.configuring.restarts() ? "words " + node.configuring.conf : "";
  if (asked != seen.leave_asked) {
    seen.leave_asked = asked;
    seen.leave_asked_at.reset();
    seen.kept_since.reset();
    seen.kept_by.clear();
  }
  if (asked.empty()) return;
  if (!seen.leave_asked_at) seen.leave_asked_at = out.context.mono;
  out.leave_asked_at = seen.leave_asked_at;
  std::string kept_by = judge_leave(leave_input(out)).kept_by;
  if (!seen.kept_since || kept_by != seen.kept_by) seen.kept_since = out.context.mono;
  seen.kept_by = std::move(kept_by);
  out.kept_since = seen.kept_since;
}

}  // namespace enlist
