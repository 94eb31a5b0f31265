#include "enlist/coordinator/departed.hpp"

#include <memory>
#include <utility>

#include "enlist/wire/messages.hpp"

namespace enlist {

std::map<std::string, Node> departed_nodes(const std::map<std::string, core::Json>& values) {
  std::map<std::string, Node> out;
  const auto found = values.find(kDepartedValue);
  if (found == values.end() || !found->second.is_object()) return out;
  for (const auto& [name, json] : found->second.items()) {
    if (auto node = from_json<Node>(json)) out.emplace(name, *std::move(node));
  }
  return out;
}

std::optional<core::Json> departed_value(const std::map<std::string, Node>& departed) {
  if (departed.empty()) return std::nullopt;
  core::Json out = core::Json::object();
  for (const auto& [name, node] : departed) out[name] = to_json(node);
  return out;
}

Node departed(const Node& left) {
  Node out;
  out.name = left.name;
  out.pool = left.pool;
  // The host may join again with its key, as another node. So the record gets a key that no host has.
  out.key = "departed";
  out.revoked = true;
  out.joined = left.joined;
  out.report.hostname = left.report.hostname;
  out.report.instance_id = left.report.instance_id;
  out.report.left = true;
  out.confirmed = left.confirmed;
  out.phase = Phase::kDraining;
  out.message = "slurmctld has its record again: it was killed before it had saved that the record was deleted";
  out.leaving = {.wanted = true, .stop = true, .since = left.leaving.since};
  return out;
}

plan::Plan plan_departed(const NodeObserved& observed) {
  plan::Plan out;
  out.wake_after(core::Duration{5'000}, "slurmctld may lose the deletion of the record");
  if (!observed.slurm || !observed.slurm->complete()) return out;
  const Node& node = *observed.departed;
  const slurm::Node* record = observed.slurm->node(node.name);
  if (record != nullptr && is_of(*record, node)) {
    out.lane("node").add({{"return", "node", node.name}, node.message, std::make_shared<ReturnNode>(node.name)});
  } else if (observed.absent_since && observed.slurm->requested_at - *observed.absent_since >= kSavedAfter) {
    out.lane("node").add(
        {{"forget", "departed node", node.name}, "slurmctld has saved the deletion", std::make_shared<ForgetDeparted>(node.name)});
  }
  return out;
}

}  // namespace enlist
