// With scalingMode DaemonSet, detects that many Kubernetes nodes stop matching at once. Then the list of nodes is in doubt: a
// restored etcd or a relist with wrong data must not end workers. Nodes that stop matching one after the other cause no doubt.
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
  /// When the loss was first seen (RFC 3339). Users confirm with this time, so that they confirm only this loss.
  std::string since{};
  bool confirmed = false;
  [[nodiscard]] bool any() const { return before > 0; }
  /// True if no worker may be deleted because its node does not match.
  [[nodiscard]] bool holds() const { return any() && !confirmed; }
  /// Returns the message of the condition: "only 1 of 6 ...". told_loss() parses it.
  [[nodiscard]] std::string text() const;
};

/// True if so many of the `before` nodes stopped matching that the list is in doubt: fewer than half match and at least three
/// are lost, or none matches and at least two are lost.
[[nodiscard]] bool implausible_loss(int before, int now);
/// Parses the loss from the conditions. Returns an empty loss if they report none.
[[nodiscard]] NodeLoss told_loss(const std::vector<api::Condition>& conditions);

struct Observed;
/// Returns the loss compared with the number of nodes that the status recorded for the same spec. After a change of the spec,
/// finds no new loss, because users caused the change. A loss that the condition already reports continues even then.
[[nodiscard]] NodeLoss find_node_loss(const Observed& observed);

}  // namespace op::nodeset
