// The part of the bridge's oracle that checks nodes.
#include <fmt/format.h>

#include <algorithm>

#include "bridge/common/names.hpp"
#include "sim/programs/bridge/oracle.hpp"
#include "sim/slurm/text.hpp"

namespace sim {
namespace {

using core::Json;
namespace res = kube::resources;

constexpr const char* kSlurmUser = "slurm";
constexpr const char* kReasonPrefix = "slurm-bridge: ";
constexpr const char* kMadeAgain = "slurm-bridge: its record is made again";

bool is_labelled(const Json& node) {
  const Json* labels = core::find(node, {"metadata", "labels"});
  return labels != nullptr && labels->contains(bridge::kLabelExternalNode) &&
         core::get_string(*labels, {bridge::kLabelExternalNode}) != "false";
}

bool takes_pods(const Json& node) {
  return is_ready(node) && !terminating(node) && !(*core::find(node, {"spec"})).value("unschedulable", false);
}

bool is_tainted(const Json& node) {
  const Json* taints = core::find(node, {"spec", "taints"});
  return taints != nullptr &&
         std::ranges::any_of(*taints, [](const Json& taint) { return taint["key"] == bridge::kTaintManagedNode; });
}

}  // namespace

/// Reports whether this installation of the bridge created the node.
bool BridgeOracle::is_ours(const SimNode& node) const {
  const std::string mark = "slurm-bridge/" + installation_ + "/";
  return node.external &&
         std::ranges::any_of(node.features, [&](const std::string& feature) { return feature.starts_with(mark); });
}

// --- What the bridge does ---------------------------------------------------------------------------------------------

/// Checks that Slurm does not have the node yet. If slurmctld already has a node of this name, it refuses the creation. Before
/// 26.05, it also deletes that node if the node is idle.
void BridgeOracle::check_creation(const std::string& line) {
  const auto lines = read_slurm_conf(line);
  const std::string name = lines && !lines->empty() ? word(lines->front(), "nodename") : "";
  const SimNode* node = slurm_.node(name);
  if (node == nullptr || loop_.clock().mono() - node->made < kNews) return;
  violation("the bridge creates node " + name + ", which Slurm has");
}

void BridgeOracle::check_deletion(const SimNode& node, const std::vector<const SimJob*>& jobs, const std::string& user) {
  if (user != kSlurmUser) return;
  if (!is_ours(node)) violation("the bridge deletes node " + node.name + ", which it has not created");
  if (!jobs.empty()) violation(fmt::format("the bridge deletes node {}, which job {} holds", node.name, jobs.front()->id));
  if (!node.drain || !node.reason.starts_with(kReasonPrefix))
    violation("the bridge deletes node " + node.name + ", which somebody else holds: " + node.reason);
}

void BridgeOracle::check_features(const SimNode& node, const SimNodeUpdate& update) {
  if (update.features && !is_ours(node))
    violation("the bridge changes the features of " + node.name + ", which it has not created");
  if (!update.features) return;
  SimNode after = node;
  after.features = *update.features;
  if (is_ours(node) && !is_ours(after)) violation("the bridge removes its own mark from " + node.name);
}

bool BridgeOracle::holds_back(const std::string& node, std::int64_t job) const {
  const SimNode* record = slurm_.node(node);
  if (record == nullptr || record->external) return true;
  constexpr std::string_view kBegin = R"({"slurm-bridge":")";
  const std::size_t end = record->extra.find('"', kBegin.size());
  if (!record->extra.starts_with(kBegin) || end == std::string::npos) return false;
  const auto jobs = split(std::string_view(record->extra).substr(kBegin.size(), end - kBegin.size()), ' ');
  return std::ranges::find(jobs, std::to_string(job)) != jobs.end();
}

// --- What must not last -----------------------------------------------------------------------------------------------

void BridgeOracle::wrong_nodes(Wrong& out) const {
  std::set<std::string> names;
  for (const auto& [key, stored] : api_.store().all("nodes")) names.insert(key.name);
  for (const auto& [name, node] : slurm_.nodes()) {
    if (is_ours(node)) names.insert(name);
  }
  for (const std::string& name : names) {
    const Json* host = api_.peek(res::kNode, {"", name});
    const SimNode* node = slurm_.node(name);
    if (const std::string why = wrong_with(host, node); !why.empty()) out["node " + name] = name + " " + why;
  }
}

std::string BridgeOracle::wrong_with(const Json* host, const SimNode* node) const {
  const bool labelled = host != nullptr && is_labelled(*host);
  if (node == nullptr) {
    if (host == nullptr) return {};
    if (labelled)
      return takes_pods(*host) && !names_unknown_partition(*host) ? "is labelled as external, and Slurm does not have it" : "";
    return is_tainted(*host) && !terminating(*host) ? "has the taint, and Slurm does not have it" : "";
  }
  const bool held = node->drain && node->reason.find(kReasonPrefix) != std::string::npos;
  if (is_ours(*node) && !labelled) {
    if (!node->drain) return "is not wanted in Slurm any more, and takes jobs";
    return held && !node->down && node->reason.starts_with(kReasonPrefix) && !slurm_.busy(node->name)
               ? "is not wanted in Slurm any more"
               : "";
  }
  if (host == nullptr) return {};
  if (!takes_pods(*host) && !node->drain) return "takes no pods, and Slurm gives it jobs";
  if (takes_pods(*host) && held && !node->down && !node->reason.starts_with(kMadeAgain))
    return "takes pods, and is drained: " + node->reason;
  if (is_ours(*node) && takes_pods(*host) && node->not_responding && !node->drain && !node->down && !slurm_.busy(node->name))
    return "gets no jobs, because Slurm waits for its answer";
  if (!is_tainted(*host) && !terminating(*host)) return "is Slurm's, and has no taint";
  return {};
}

bool BridgeOracle::names_unknown_partition(const Json& host) const {
  for (const std::string& name :
       split(core::get_string(host, {"metadata", "annotations", bridge::kAnnotationPartitions}), ',')) {
    if (!slurm_.partitions().contains(name)) return true;
  }
  return false;
}

}  // namespace sim
