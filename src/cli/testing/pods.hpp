// Pods of slurm-bridge and their jobs, for unit tests.
#pragma once

#include <memory>
#include <string>

#include "bridge/common/names.hpp"
#include "bridge/common/states.hpp"
#include "core/json.hpp"

namespace cli {

/// Returns pod research/train-0, which waits for Slurm and has no conditions yet.
inline core::Json waiting_pod_object() {
  core::Json pod{
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata",
       {{"name", "train-0"}, {"namespace", "research"}, {"uid", "uid-train-0"}, {"creationTimestamp", "2026-01-02T02:55:00Z"}}},
      {"spec", {{"schedulerName", "default-scheduler"}}},
      {"status", {{"phase", "Pending"}}}};
  pod["spec"]["containers"].push_back({{"name", "rank"}, {"image", "i"}});
  pod["spec"]["schedulingGates"].push_back({{"name", bridge::kGate}});
  return pod;
}

/// Adds a condition, or replaces the one of this type.
inline void set_condition(core::Json& pod, const std::string& type, const std::string& status, const std::string& reason,
                          const std::string& message) {
  core::Json& conditions = pod["status"]["conditions"];
  if (!conditions.is_array()) conditions = core::Json::array();
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    if (conditions[i]["type"] == type) conditions.erase(i--);
  }
  conditions.push_back({{"type", type},
                        {"status", status},
                        {"reason", reason},
                        {"message", message},
                        {"lastTransitionTime", "2026-01-02T02:56:00Z"}});
}

/// When a job was submitted, in seconds since 1970.
inline constexpr std::int64_t kTestSubmitted = 1767322500;

/// Turns the pod into one that was placed on node-2 for this job. `bound`: whether Kubernetes has bound it.
inline void place_pod(core::Json& pod, std::int64_t job, bool bound) {
  pod["spec"].erase("schedulingGates");
  pod["spec"]["tolerations"].push_back({{"key", bridge::kTolerationPlacedFor},
                                        {"operator", "Equal"},
                                        {"value", bridge::placed_for_value({job, kTestSubmitted})}});
  const core::Json field{{"key", "metadata.name"}, {"operator", "In"}, {"values", core::Json::array({"node-2"})}};
  const core::Json fields{{"matchFields", core::Json::array({field})}};
  pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"].push_back(
      fields);
  pod["metadata"]["labels"][std::string(bridge::kLabelJobId)] = std::to_string(job);
  if (bound) pod["spec"]["nodeName"] = "node-2";
  set_condition(pod, "SlurmQueued", "False", "Allocated", "job " + std::to_string(job) + " holds node-2");
  set_condition(pod, "PodScheduled", bound ? "True" : "False", bound ? "" : "Unschedulable",
                bound ? "" : "0/3 nodes are available: 1 Insufficient cpu");
}

/// Returns the admin_comment of a job that slurm-bridge submitted for a pod with this UID. `group`: the name of its group.
inline std::string bridge_comment(const std::string& installation, const std::string& uid, const std::string& group = "") {
  const core::Json pod{{"ns", "research"}, {"name", "train-0"}, {"uid", uid}};
  core::Json more{{"pods", core::Json::array({pod})}};
  if (!group.empty()) more["group"] = {{"ns", "research"}, {"name", group}};
  const std::string root = group.empty() ? uid : "uid-" + group;
  return slurm::admin_comment({slurm::Owner::kBridge, installation, bridge::key_of(root, 1)}, more);
}

/// Returns a Deployment of slurm-bridge with these arguments.
inline core::Json bridge_deployment(const core::Json& arguments) {
  core::Json out{
      {"apiVersion", "apps/v1"},
      {"kind", "Deployment"},
      {"metadata",
       {{"name", "slurm-bridge"}, {"namespace", "slurm-bridge"}, {"labels", {{"app.kubernetes.io/name", "slurm-bridge"}}}}},
      {"status", {{"readyReplicas", 1}}}};
  out["spec"]["selector"]["matchLabels"] = out["metadata"]["labels"];
  out["spec"]["template"]["metadata"]["labels"] = out["metadata"]["labels"];
  out["spec"]["template"]["spec"]["containers"].push_back({{"name", "bridge"}, {"image", "i"}, {"args", arguments}});
  return out;
}

inline core::Json usual_arguments() {
  return core::Json::array(
      {"--cluster=hpc/slurm", "--managed-namespaces=other,research", "--scheduler-name=slurm-bridge-scheduler"});
}

}  // namespace cli
