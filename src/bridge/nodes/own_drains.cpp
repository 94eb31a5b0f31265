#include "bridge/nodes/own_drains.hpp"

#include "slurm/holds.hpp"

namespace bridge::nodes {
namespace {

constexpr std::string_view kOfCluster = ", cluster ";

}  // namespace

std::string drain_reason(const std::string& why, const std::string& installation) {
  return why + std::string(kOfCluster) + installation;
}

std::optional<std::string> own_hold(const slurm::Node& node, const std::string& installation) {
  auto why = slurm::Holds::read(node.reason).why(slurm::Owner::kBridge);
  if (!why) return why;
  const std::size_t at = why->rfind(kOfCluster);
  if (at != std::string::npos && why->substr(at + kOfCluster.size()) != installation) return std::nullopt;
  return why;
}

bool held_elsewhere(const slurm::Node& node, const std::string& installation) {
  return slurm::held_by(node.reason, slurm::Owner::kBridge) && !own_hold(node, installation);
}

}  // namespace bridge::nodes
