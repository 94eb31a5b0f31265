#include "sim/programs/operator/oracles/objects.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/well_known.hpp"
#include "sim/slurm/text.hpp"
#include "slinky/names.hpp"

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
  return label(pod, api::kLabelName) == slinky::kAppWorker && !label(pod, api::kLabelCluster).empty();
}

bool condition_true(const Json& object, std::string_view type) {
  const Json* conditions = core::find(object, {"status", "conditions"});
  if (conditions == nullptr) return false;
  return std::any_of(conditions->begin(), conditions->end(),
                     [&](const Json& c) { return text_at(c, {"type"}) == type && text_at(c, {"status"}) == "True"; });
}

int ordinal_of(const Json& pod) {
  return std::stoi("0" + label(pod, api::kLabelPodIndex));
}

std::set<std::string> features_of(const Json& nodeset, const Json& host) {
  std::set<std::string> out{name_of(nodeset)};
  for (const auto& [key, value] : read_node_conf(text_at(nodeset, {"spec", "extraConf"})).value_or(ConfWords{})) {
    if (key != "features" && key != "feature") continue;
    for (const std::string& feature : split(value, ',')) out.insert(feature);
  }
  std::string spec = annotation(host, api::kAnnotationFeaturesSpec);
  std::erase(spec, ' ');
  for (const std::string& feature : split(spec, ',')) out.insert("k8s/" + feature);
  return out;
}

int partition_of(const Json& nodeset) {
  return static_cast<int>(core::get_int(nodeset, {"spec", "updateStrategy", "rollingUpdate", "partition"}));
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

bool host_goes(const Json& node) {
  const Json* taints = core::find(node, {"spec", "taints"});
  const bool announced = taints != nullptr && std::ranges::any_of(*taints, [](const Json& taint) {
                           return std::ranges::find(api::kDrainTaints, text_at(taint, {"key"})) != api::kDrainTaints.end();
                         });
  return announced || core::get_bool(node, {"spec", "unschedulable"});
}

bool pod_cordoned(const Json& pod) {
  return annotation(pod, api::kAnnotationPodCordon) == "true" || annotation(pod, api::kAnnotationPodCordonRequested) == "true";
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

bool bound_to_hosts(const core::Json& nodeset) {
  return text_at(nodeset, {"spec", "scalingMode"}) == "DaemonSet";
}

bool bound_to_host(const core::Json& pod) {
  return label(pod, api::kLabelScalingMode) == "DaemonSet";
}

std::string pinned_to(const core::Json& pod) {
  const core::Json* terms = core::find(
      pod, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
  const core::Json::json_pointer host("/0/matchFields/0/values/0");
  return terms != nullptr && terms->contains(host) ? terms->at(host).get<std::string>() : "";
}

std::string daemon_name_of(const core::Json& node) {
  const std::string given = annotation(node, api::kAnnotationNodeHostnameOverride);
  return given.empty() ? name_of(node).substr(0, name_of(node).find('.')) : given;
}

bool matches(const core::Json& nodeset, const core::Json& node) {
  const core::Json* selector = core::find(nodeset, {"spec", "template", "spec", "nodeSelector"});
  return selector == nullptr || core::contains(node["metadata"].value("labels", core::Json::object()), *selector);
}

std::int64_t wished_workers(const KubeApi& api, const core::Json& nodeset) {
  if (!bound_to_hosts(nodeset)) return core::get_int(nodeset, {"spec", "replicas"}, 1);
  const auto& nodes = api.store().all("nodes");
  return std::ranges::count_if(nodes, [&](const auto& item) { return matches(nodeset, item.second->body); });
}

}  // namespace sim
