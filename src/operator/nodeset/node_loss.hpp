// With scalingMode DaemonSet: Kubernetes nodes that match no longer, so many at once that the list of nodes is in doubt rather
// than they. A restored etcd, a relist with wrong data, or labels that a script has removed must end no workers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/nodeset.hpp"

namespace op::nodeset {

/// What was seen of it. It lasts in the message of the condition DeletionsStopped.
struct NodeLoss {
  int before = 0;       ///< So many nodes matched,
  int now = 0;          ///< and so many do.
  std::string since{};  ///< When that was seen first (RFC 3339). People confirm by it, so that they confirm this loss alone.
  bool confirmed = false;
  [[nodiscard]] bool any() const { return before > 0; }
  /// No worker goes because its node does not match.
  [[nodiscard]] bool holds() const { return any() && !confirmed; }
  /// "Only 1 of 6 ...": what is read again from the condition.
  [[nodiscard]] std::string text() const;
};

/// Of `before` nodes that matched only `now` do: most are gone, and more than the two that somebody takes out; or all.
[[nodiscard]] bool implausible_loss(int before, int now);
/// The loss that the conditions tell of; none: they tell of none.
[[nodiscard]] NodeLoss told_loss(const std::vector<api::Condition>& conditions);

struct Observed;
/// What the status says was seen before, under this very spec: a change of the spec is somebody's wish.
[[nodiscard]] NodeLoss find_node_loss(const Observed& observed);

}  // namespace op::nodeset
