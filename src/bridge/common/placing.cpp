#include "bridge/common/placing.hpp"

#include <algorithm>

#include "bridge/common/names.hpp"
#include "bridge/common/patches.hpp"

namespace bridge {
namespace {

using core::Json;

void add_pin(Json& patch, const Json& affinity, const std::string& node) {
  const Json field{{"key", "metadata.name"}, {"operator", "In"}, {"values", Json::array({node})}};
  const Json fields{{"matchFields", Json::array({field})}};
  const Json required{{"nodeSelectorTerms", Json::array({fields})}};
  const Json node_affinity{{"requiredDuringSchedulingIgnoredDuringExecution", required}};
  if (!affinity.is_object()) return patch.push_back(add_op("/spec/affinity", {{"nodeAffinity", node_affinity}}));
  const Json* of_nodes = core::find(affinity, {"nodeAffinity"});
  std::string path = "/spec/affinity/nodeAffinity";
  if (of_nodes == nullptr || !of_nodes->is_object()) return patch.push_back(add_op(path, node_affinity));
  const Json* terms = core::find(*of_nodes, {"requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
  path += "/requiredDuringSchedulingIgnoredDuringExecution";
  if (terms == nullptr || terms->empty()) return patch.push_back(add_op(path, required));
  for (std::size_t i = 0; i < terms->size(); ++i) {
    const std::string term = path + "/nodeSelectorTerms/" + std::to_string(i) + "/matchFields";
    const Json* have = core::find((*terms)[i], {"matchFields"});
    if (have == nullptr || have->empty()) {
      patch.push_back(add_op(term, Json::array({field})));
    } else {
      patch.push_back(add_op(term + "/-", field));
    }
  }
}

/// Removes the gate of the bridge.
void remove_gate(Json& patch, const kube::SchedulingPodRecord& pod) {
  const auto gate = std::ranges::find(pod.gates, kGate) - pod.gates.begin();
  const std::string path = "/spec/schedulingGates/" + std::to_string(gate);
  patch.push_back({{"op", "test"}, {"path", path}, {"value", {{"name", kGate}}}});
  patch.push_back({{"op", "remove"}, {"path", path}});
}

}  // namespace

plan::ActPtr let_go(const kube::SchedulingPodRecord& pod) {
  Json patch = Json::array();
  remove_gate(patch, pod);
  return kube::json_patch(kube::resources::kPod, pod.meta, std::move(patch));
}

plan::ActPtr place(const kube::SchedulingPodRecord& pod, const std::string& kube_node, const std::string& slurm_node,
                   const JobId& job) {
  Json patch = Json::array();
  remove_gate(patch, pod);
  add_pin(patch, pod.affinity, kube_node);
  const auto tolerated = [](const kube::Toleration& toleration) {
    return (toleration.key.empty() || toleration.key == kTaintManagedNode) && toleration.op == "Exists" &&
           toleration.effect.empty() && !toleration.seconds;
  };
  const Json record{{"key", kTolerationPlacedFor}, {"operator", "Equal"}, {"value", placed_for_value(job)}};
  patch.push_back(pod.tolerations.empty() ? add_op("/spec/tolerations", Json::array({record}))
                                          : add_op("/spec/tolerations/-", record));
  if (std::ranges::none_of(pod.tolerations, tolerated))
    patch.push_back(add_op("/spec/tolerations/-", {{"key", kTaintManagedNode}, {"operator", "Exists"}}));
  add_entry(patch, "/metadata/labels", !pod.meta.labels.empty(), kLabelJobId, std::to_string(job.number));
  add_entry(patch, "/metadata/annotations", pod.annotated, kAnnotationNode, slurm_node);
  return kube::json_patch(kube::resources::kPod, pod.meta, std::move(patch));
}

plan::ActPtr restore_words(const kube::SchedulingPodRecord& pod, const std::string& slurm_node, std::int64_t job) {
  Json meta{{"labels", {{std::string(kLabelJobId), std::to_string(job)}}},
            {"annotations", {{std::string(kAnnotationNode), slurm_node}}}};
  return kube::merge_patch(kube::resources::kPod, pod.meta, {{"metadata", std::move(meta)}});
}

plan::ActPtr note_replaced(const kube::SchedulingPodRecord& pod, std::int64_t job) {
  Json annotations{{std::string(kAnnotationReplacedJob), std::to_string(job)}};
  return kube::merge_patch(kube::resources::kPod, pod.meta, {{"metadata", {{"annotations", std::move(annotations)}}}});
}

core::Json condition_changes(const kube::PodRecord& pod, const std::vector<Condition>& wanted, core::WallTime now) {
  Json out = Json::array();
  for (const Condition& condition : wanted) {
    const std::string status = condition.status ? "True" : "False";
    const kube::PodCondition* have = pod.condition(condition.type);
    if (have != nullptr && have->status == status && have->reason == condition.reason && have->message == condition.message)
      continue;
    Json entry{{"type", condition.type}, {"status", status}, {"reason", condition.reason}, {"message", condition.message}};
    if (have == nullptr || have->status != status) entry["lastTransitionTime"] = core::format_rfc3339(now);
    out.push_back(std::move(entry));
  }
  return out;
}

plan::ActPtr set_conditions(const kube::PodRecord& pod, Json changes) {
  return kube::patch_any_version(kube::resources::kPod, pod.meta, {{"status", {{"conditions", std::move(changes)}}}},
                                 kube::PatchType::kStrategic, "status");
}

plan::ActPtr fail_unbound(const kube::PodRecord& pod, const kube::PodEvidence& evidence, std::string reason,
                          std::string message, Json conditions) {
  auto act = std::make_shared<kube::Patch>();
  act->resource = kube::resources::kPod;
  act->key = pod.meta.key();
  act->uid = evidence.uid();
  act->resource_version = evidence.resource_version();
  act->subresource = "status";
  act->type = kube::PatchType::kStrategic;
  act->patch = {{"status",
                 {{"phase", "Failed"},
                  {"reason", std::move(reason)},
                  {"message", std::move(message)},
                  {"conditions", std::move(conditions)}}}};
  return act;
}

}  // namespace bridge
