#include "sim/oracles/objects.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/well_known.hpp"
#include "cluster/names.hpp"

namespace sim {

using core::Json;

std::string text_at(const Json& object, std::initializer_list<std::string_view> path) {
  return core::get_string(object, path);
}
std::string label(const Json& object, std::string_view name) {
  return text_at(object, {"metadata", "labels", name});
}
std::string annotation(const Json& object, std::string_view name) {
  return text_at(object, {"metadata", "annotations", name});
}
std::string name_of(const Json& object) {
  return text_at(object, {"metadata", "name"});
}
std::string namespace_of(const Json& object) {
  return text_at(object, {"metadata", "namespace"});
}
std::string key_of(const Json& object) {
  return namespace_of(object) + "/" + name_of(object);
}

bool is_worker(const Json& pod) {
  return label(pod, api::kLabelName) == op::kAppWorker && !label(pod, api::kLabelCluster).empty();
}

bool condition_true(const Json& object, std::string_view type) {
  const Json* conditions = core::find(object, {"status", "conditions"});
  if (conditions == nullptr) return false;
  return std::any_of(conditions->begin(), conditions->end(),
                     [&](const Json& c) { return text_at(c, {"type"}) == type && text_at(c, {"status"}) == "True"; });
}

bool never_started(const Json& pod) {
  return text_at(pod, {"spec", "nodeName"}).empty();
}

std::string owner_uid(const Json& object, std::string_view kind) {
  const Json* owners = core::find(object, {"metadata", "ownerReferences"});
  if (owners == nullptr) return "";
  for (const Json& owner : *owners) {
    if (text_at(owner, {"kind"}) == kind) return text_at(owner, {"uid"});
  }
  return "";
}

bool acts_in(const std::vector<std::string>& namespaces, std::string_view ns) {
  return namespaces.empty() || std::ranges::find(namespaces, ns) != namespaces.end();
}

bool idle_and_held(const SimSlurm& slurm, const std::string& name) {
  const SimNode* node = slurm.node(name);
  return (node == nullptr || node->drain || node->down) && !slurm.busy(name);
}

bool runs_slurmd(const SlurmSite::Cluster& cluster, const std::string& node, const Json& pod) {
  const auto slurmd = cluster.slurmds.find(node);
  return slurmd != cluster.slurmds.end() && slurmd->second == text_at(pod, {"metadata", "uid"});
}

std::string shown(const SimSlurm& slurm, const SimNode& node) {
  std::string out;
  for (const std::string& word : slurm.state_words(node)) out += word + " ";
  out += "(" + node.reason + ")";
  if (node.comment.empty()) out += ", no comment";
  if (const auto jobs = slurm.jobs_on(node.name); !jobs.empty())
    out += fmt::format(", job {} {}", jobs.front()->id, to_string(jobs.front()->state));
  return out;
}

bool frees_node(const SimNodeUpdate& update) {
  const std::string state = update.state.value_or("");
  return state == "RESUME" || state == "UNDRAIN" || state == "IDLE";
}

}  // namespace sim
