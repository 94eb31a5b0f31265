#include "slurm/model.hpp"

#include <algorithm>
#include <set>

namespace slurm {

bool is_silent(const Node& node) {
  return node.state.base == "DOWN" && node.state.has("NOT_RESPONDING");
}

bool Job::holds_nodes() const {
  if (flags.contains("CONFIGURING") || flags.contains("COMPLETING")) return true;
  static const std::set<std::string, std::less<>> kHoldNothing{"PENDING",  "COMPLETED",     "CANCELLED", "FAILED",
                                                               "TIMEOUT",  "NODE_FAIL",     "PREEMPTED", "BOOT_FAIL",
                                                               "DEADLINE", "OUT_OF_MEMORY", "REVOKED"};
  return !kHoldNothing.contains(state);
}

bool Job::in_queue() const {
  return holds_nodes() || state == "PENDING";
}

bool Job::holds(std::string_view node) const {
  return holds_nodes() && (nodes_unknown || std::ranges::find(nodes, node) != nodes.end());
}

bool Job::runs_on(std::string_view node) const {
  if ((state != "RUNNING" && state != "SUSPENDED") || flags.contains("COMPLETING") || nodes_unknown || id <= 0) return false;
  const auto given = nodes.end() - static_cast<std::ptrdiff_t>(only_named);
  return std::find(nodes.begin(), given, node) != given;
}

std::string Job::full_id() const {
  return array > 0 && task ? std::to_string(array) + "_" + std::to_string(*task) : std::to_string(id);
}

std::vector<std::string> replace_own(const std::vector<std::string>& have, const OwnFeatures& own) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& feature) {
    if (std::ranges::find(out, feature) == out.end()) out.push_back(feature);
  };
  const auto is_one_of = [](const std::vector<std::string>& all, const std::string& feature) {
    return std::ranges::find(all, feature) != all.end();
  };
  for (const std::string& feature : own.besides) add(feature);
  for (const std::string& feature : have) {
    const bool former = (!own.prefix.empty() && feature.starts_with(own.prefix)) || is_one_of(own.obsolete, feature);
    if (!former || is_one_of(own.values, feature)) add(feature);
  }
  for (const std::string& feature : own.values) add(feature);
  return out;
}

bool has_own(const Node& node, const OwnFeatures& own) {
  const auto right = [&](const std::vector<std::string>& have) {
    const std::vector<std::string> wanted = replace_own(have, own);
    return std::set<std::string>(wanted.begin(), wanted.end()) == std::set<std::string>(have.begin(), have.end());
  };
  return right(node.features) && right(node.active_features);
}

}  // namespace slurm
