#include "enlist/coordinator/target.hpp"

#include <utility>

#include "enlist/coordinator/plan.hpp"

namespace enlist {
namespace {

core::Result<Changes> record(const Contents& now, const RecordPhase& act) {
  const auto found = now.nodes.find(act.node);
  if (found == now.nodes.end() || found->second.key != act.key || found->second.report.instance_id != act.instance_id)
    return core::fail(core::ErrorCode::kConflict, "node " + act.node + " has changed since");
  Node node = found->second;
  node.phase = act.phase;
  node.message = act.message;
  node.registrations = act.registrations;
  node.confirmed = act.confirmed;
  node.gate_boot = act.gate_boot;
  return Changes{.nodes = {{act.node, std::move(node)}}};
}

}  // namespace

StoreTarget::StoreTarget(Store& store) : store_(store) {
  carries_out<RecordPhase>([this](const auto& act, const Done& done) {
    store_.commit([act](const Contents& now) { return record(now, *act); },
                  [done](core::Result<void> result) {
                    if (result) return done({core::Json::object(), {}});
                    done({std::unexpected(result.error()), {}});
                  });
  });
}

}  // namespace enlist
