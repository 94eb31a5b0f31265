#include "bridge/gangs/seating.hpp"

#include <algorithm>

#include "bridge/common/groups.hpp"

namespace bridge::gangs {

std::vector<std::pair<PodPtr, std::string>> seat(const Pods& pods, const std::vector<std::string>& nodes,
                                                 const std::vector<std::string>& taken) {
  std::vector<std::string> free = nodes;
  std::erase_if(free, [&](const std::string& node) { return std::ranges::find(taken, node) != taken.end(); });
  const bool all = pods.size() >= free.size();
  std::vector<std::pair<PodPtr, std::string>> out;
  Pods others;
  for (const PodPtr& pod : pods) {
    const auto index = all ? std::nullopt : index_of(pod->meta);
    const bool has_node = index && static_cast<std::size_t>(*index) < nodes.size();
    const auto node = has_node ? std::ranges::find(free, nodes[static_cast<std::size_t>(*index)]) : free.end();
    if (node == free.end()) {
      others.push_back(pod);
      continue;
    }
    out.emplace_back(pod, *node);
    free.erase(node);
  }
  for (std::size_t i = 0; i < std::min(others.size(), free.size()); ++i) out.emplace_back(others[i], free[i]);
  return out;
}

}  // namespace bridge::gangs
