// With scalingMode DaemonSet, detects that many Kubernetes nodes stop matching the NodeSet at once. The list of nodes might
// then come from a restored etcd or from a relist with wrong data, so it must not end workers. Nodes that stop matching one
// after the other cause no doubt.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/nodeset.hpp"

namespace op::nodeset {

/// A loss of nodes. It is stored in the message of the condition DeletionsStopped.
struct NodeLoss {
  int before = 0;  ///< Number of nodes that matched.
  int now = 0;     ///< Number of nodes that match now.
  /// When the loss was first seen (RFC 3339). A confirmation names this time, so that it applies only to this loss.
  std::string since{};
  bool confirmed = false;
  [[nodiscard]] bool any() const { return before > 0; }
  /// True while the operator must not delete a worker only because the Kubernetes node of the worker does not match.
  [[nodiscard]] bool holds() const { return any() && !confirmed; }
  /// Returns the message of the condition: "only 1 of 6 ...". told_loss() parses it.
  [[nodiscard]] std::string text() const;
};

/// True if so many of the `before` nodes stopped matching that the list is in doubt: fewer than half match and at least three
/// are lost, or none matches and at least two are lost.
[[nodiscard]] bool implausible_loss(int before, int now);
/// Parses the loss from the conditions. Returns an empty loss if the conditions report none.
[[nodiscard]] NodeLoss told_loss(const std::vector<api::Condition>& conditions);

struct Observed;
/// Compares the number of nodes that match now with the number that the status recorded, and returns the loss. After a change
/// of the spec, finds no new loss, because users caused the change. A loss that the condition DeletionsStopped already reports
/// continues even after a change of the spec.
[[nodiscard]] NodeLoss find_node_loss(const Observed& observed);

}  // namespace op::nodeset
