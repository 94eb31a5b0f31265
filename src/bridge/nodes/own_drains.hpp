// Finds the drain of this cluster's bridge on a Slurm node. Bridges of several Kubernetes clusters can drain one node, so each
// hold names its cluster (slurm/holds.hpp). If a bridge created the node, that bridge's hold names none: the node's mark does.
#pragma once

#include <optional>
#include <string>

#include "slurm/holds.hpp"
#include "slurm/model.hpp"

namespace bridge::nodes {

struct OwnHold {
  slurm::Holder holder;
  std::string why;
};
/// Returns the hold of this cluster's bridge; nullopt if this bridge does not hold the node. Holds of earlier releases name no
/// cluster. Such a hold counts as this cluster's, unless the bridge of another cluster uses the node.
[[nodiscard]] std::optional<OwnHold> own_hold(const slurm::Node& node, const std::string& installation);

}  // namespace bridge::nodes
