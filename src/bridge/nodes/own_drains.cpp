#include "bridge/nodes/own_drains.hpp"

#include "bridge/common/hosts.hpp"

namespace bridge::nodes {

std::optional<OwnHold> own_hold(const slurm::Node& node, const std::string& installation) {
  const slurm::Holds holds = slurm::Holds::read(node.reason);
  const slurm::Holder named{slurm::Owner::kBridge, installation}, unnamed{slurm::Owner::kBridge};
  if (const auto why = holds.why(named)) return OwnHold{named, *why};
  const auto why = holds.why(unnamed);
  if (!why || !other_cluster_of(node, installation).empty()) return std::nullopt;
  return OwnHold{unnamed, *why};
}

}  // namespace bridge::nodes
