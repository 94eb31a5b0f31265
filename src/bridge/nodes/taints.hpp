// The patches of a Kubernetes node that the bridge writes.
#pragma once

#include <set>
#include <string>

#include "core/json.hpp"
#include "kube/acts.hpp"
#include "kube/object.hpp"

namespace bridge::nodes {

/// Returns the text as the value of a taint: at most 63 letters, digits, and "-", "_", "." between them.
[[nodiscard]] std::string taint_value(std::string_view text);

using Effects = std::set<std::pair<std::string, std::string>>;  ///< Effect and value.
/// Returns a patch after which the node has the taint of managed nodes with exactly these effects and values; null if nothing
/// changes. The patch leaves other taints alone, and fails with kConflict if the node has changed.
[[nodiscard]] plan::ActPtr set_taints(const kube::SchedulingNodeRecord& node, const Effects& wanted);

/// A wanted condition of a node.
struct Condition {
  bool status = false;
  std::string reason;   ///< CamelCase.
  std::string message;  ///< One line.
};
/// Returns a patch that sets the condition of the bridge; null if the node already has the wanted condition.
[[nodiscard]] plan::ActPtr set_condition(const kube::SchedulingNodeRecord& node, const Condition& wanted, core::WallTime now);
/// Reports whether the node has a condition of the bridge.
[[nodiscard]] bool has_condition(const kube::SchedulingNodeRecord& node);
/// Reports whether the node has the taint of managed nodes, with any effect.
[[nodiscard]] bool is_tainted(const kube::SchedulingNodeRecord& node);

}  // namespace bridge::nodes
