// Whose drain of a Slurm node is. Bridges of two Kubernetes clusters may drain one node, so the reason names the cluster:
//
//   slurm-bridge: Kubernetes node (a) was cordoned, cluster UID
//
// A node that a bridge created has that bridge's mark, so its reason names no cluster.
#pragma once

#include <optional>
#include <string>

#include "slurm/model.hpp"

namespace bridge::nodes {

/// Returns why this cluster's bridge drains a node that it did not create, with the UID of the cluster.
[[nodiscard]] std::string drain_reason(const std::string& why, const std::string& installation);

/// Returns why this cluster's bridge holds the node; nullopt if it does not. Earlier releases named no cluster: such a hold
/// counts as this cluster's.
[[nodiscard]] std::optional<std::string> own_hold(const slurm::Node& node, const std::string& installation);
/// Reports whether the bridge of another cluster holds the node.
[[nodiscard]] bool held_elsewhere(const slurm::Node& node, const std::string& installation);

}  // namespace bridge::nodes
