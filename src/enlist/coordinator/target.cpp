#include "enlist/coordinator/target.hpp"

#include <algorithm>
#include <utility>

#include "enlist/coordinator/departed.hpp"
#include "enlist/coordinator/leaving.hpp"
#include "enlist/coordinator/plan.hpp"
#include "enlist/coordinator/pools_acts.hpp"
#include "enlist/wire/messages.hpp"

namespace enlist {
namespace {

core::Result<Changes> record(const Contents& now, const RecordPhase& act) {
  const auto found = now.nodes.find(act.node);
  if (found == now.nodes.end() || found->second.key != act.key || found->second.report.instance_id != act.instance_id ||
      found->second.leaving != act.seen_leaving || found->second.configuring != act.seen_configuring)
    return core::fail(core::ErrorCode::kConflict, "node " + act.node + " has changed since");
  Node node = found->second;
  node.phase = act.phase;
  node.message = act.message;
  node.registrations = act.registrations;
  node.confirmed = act.confirmed;
  node.leaving = act.leaving;
  node.configuring = act.configuring;
  node.node_conf = act.node_conf;
  node.live = act.live;
  node.marks = act.marks;
  node.silent_since = act.silent_since;
  node.gate_boot = act.gate_boot;
  return Changes{.nodes = {{act.node, std::move(node)}}};
}

core::Result<Changes> forget(const Contents& now, const ForgetNode& act) {
  const auto found = now.nodes.find(act.seen.name);
  if (found == now.nodes.end()) return Changes{};
  if (found->second != act.seen) return core::fail(core::ErrorCode::kConflict, "node " + act.seen.name + " has changed since");
  return Changes{.nodes = {{act.seen.name, std::nullopt}},
                 .values = {{departed_value(act.seen.name), to_json(departed(act.seen))}}};
}

/// Removes a node from the departed nodes. `returns`: adds the node to Contents::nodes again.
Changes end_departure(const Contents& now, const std::string& name, bool returns) {
  auto node = departed_node(now.values, name);
  Changes changes{.values = {{departed_value(name), std::nullopt}}};
  if (node && returns && !now.nodes.contains(name)) changes.nodes.emplace(name, *std::move(node));
  return changes;
}

core::Result<Changes> leave_pool(const Contents& now, const LeavePool& act) {
  const auto pool = now.pools.find(act.pool);
  if (pool == now.pools.end() || !pool->second.removing)
    return core::fail(core::ErrorCode::kConflict, "pool " + act.pool + " is not being removed any more");
  std::vector<std::string> nodes;
  for (const auto& [name, node] : now.nodes) {
    if (node.pool == act.pool) nodes.push_back(name);
  }
  if (nodes.empty()) return Changes{};
  return leave(now, nodes, false, act.at);
}

core::Result<Changes> forget_pool(const Contents& now, const ForgetPool& act) {
  const auto pool = now.pools.find(act.pool);
  if (pool == now.pools.end()) return Changes{};
  const bool has_nodes = std::ranges::any_of(now.nodes, [&](const auto& entry) { return entry.second.pool == act.pool; });
  if (!pool->second.removing || has_nodes)
    return core::fail(core::ErrorCode::kConflict, "pool " + act.pool + " has changed since");
  core::Json numbers = core::Json::object();
  if (const auto found = now.values.find(kNumbersValue); found != now.values.end()) numbers = found->second;
  numbers[act.pool] = pool->second.next_number;
  return Changes{.pools = {{act.pool, std::nullopt}}, .values = {{kNumbersValue, std::move(numbers)}}};
}

}  // namespace

StoreTarget::StoreTarget(Store& store, std::function<std::optional<core::MonoTime>(const std::string&)> heard_at)
    : store_(store), heard_at_(std::move(heard_at)) {
  const auto commit = [this](Store::Change change, const Done& done) {
    store_.commit(std::move(change), [done](core::Result<void> result) {
      if (result) return done({core::Json::object(), {}});
      done({std::unexpected(result.error()), {}});
    });
  };
  // Fails if the agent has reported since `since`: the host may have returned while the act waited.
  const auto if_silent = [this, commit](const std::string& node, std::optional<core::MonoTime> since, Store::Change change,
                                        const Done& done) {
    commit(
        [this, node, since, change = std::move(change)](const Contents& now) -> core::Result<Changes> {
          if (since && heard_at_(node) > since)
            return core::fail(core::ErrorCode::kConflict, "the host of node " + node + " has returned");
          return change(now);
        },
        done);
  };
  carries_out<RecordPhase>([if_silent](const auto& act, const Done& done) {
    if_silent(
        act->node, act->heard_at, [act](const Contents& now) { return record(now, *act); }, done);
  });
  carries_out<ForgetNode>([if_silent](const auto& act, const Done& done) {
    if_silent(
        act->seen.name, act->heard_at, [act](const Contents& now) { return forget(now, *act); }, done);
  });
  carries_out<ReturnNode>([commit](const auto& act, const Done& done) {
    commit([act](const Contents& now) { return end_departure(now, act->node, true); }, done);
  });
  carries_out<ForgetDeparted>([commit](const auto& act, const Done& done) {
    commit([act](const Contents& now) { return end_departure(now, act->node, false); }, done);
  });
  carries_out<LeavePool>([commit](const auto& act, const Done& done) {
    commit([act](const Contents& now) { return leave_pool(now, *act); }, done);
  });
  carries_out<ForgetPool>([commit](const auto& act, const Done& done) {
    commit([act](const Contents& now) { return forget_pool(now, *act); }, done);
  });
}

}  // namespace enlist
