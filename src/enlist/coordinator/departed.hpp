// The departed nodes: those that have left a moment ago. The store has them in the value kDepartedValue.
//
// slurmctld writes its state to disk up to five seconds after a change (SAVE_MAX_WAIT in slurmctld's state_save.c). If
// slurmctld is killed before that, it starts again with the record of a node that was deleted, and may start jobs on the node.
// So the coordinator remembers a node that has left until Slurm has lacked the record for kSavedAfter (enlist/rules/leave.hpp).
// If the record returns, the coordinator adds the node to its nodes again, with a request to leave.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/clock.hpp"
#include "core/json.hpp"
#include "enlist/coordinator/plan.hpp"
#include "enlist/rules/model.hpp"
#include "plan/plan.hpp"

namespace enlist {

/// The name of the value in Contents::values: an object that maps names to nodes. The value is missing if there are no departed
/// nodes.
inline constexpr const char* kDepartedValue = "departed-nodes";

/// Moves a departed node back to Contents::nodes, because slurmctld has its record again. Does nothing if the node is not
/// departed.
struct ReturnNode final : plan::Act {
  explicit ReturnNode(std::string name) : node(std::move(name)) {}
  [[nodiscard]] core::Json describe() const override { return {{"act", "enlist.ReturnNode"}, {"node", node}}; }
  [[nodiscard]] Withhold withhold() const override { return Withhold::kNever; }
  std::string node;
};

/// Forgets a departed node.
struct ForgetDeparted final : plan::Act {
  explicit ForgetDeparted(std::string name) : node(std::move(name)) {}
  [[nodiscard]] core::Json describe() const override { return {{"act", "enlist.ForgetDeparted"}, {"node", node}}; }
  std::string node;
};

/// Returns the departed nodes in the values of the store. Leaves out nodes that cannot be parsed.
[[nodiscard]] std::map<std::string, Node> departed_nodes(const std::map<std::string, core::Json>& values);
/// Returns the value kDepartedValue for these nodes; nullopt (no value) if there are none.
[[nodiscard]] std::optional<core::Json> departed_value(const std::map<std::string, Node>& departed);
/// Returns the departed node for a node that has left: a record with a request to leave, whose key no host has.
[[nodiscard]] Node departed(const Node& left);

/// Plans a ReturnNode, a ForgetDeparted or nothing for NodeObserved::departed, which must be set.
[[nodiscard]] plan::Plan plan_departed(const NodeObserved& observed);

}  // namespace enlist
