// The world of tests of the gangs controller: PodGroup ns/train with the UID g, and its pods.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "bridge/common/groups.hpp"
#include "bridge/common/testing/world.hpp"
#include "bridge/gangs/observe.hpp"

namespace bridge::gangs::testing {

using bridge::testing::Json;

struct World : bridge::testing::World<GangsController> {
  World() {
    key = {"ns", "podgroup/train"};
    node("node-3");
    slurm_node("node-3");
    group(3);
  }

  /// Adds the PodGroup as the API server returns it.
  void group(int size, const std::string& uid = "g") {
    fact("group", {{"metadata", {{"uid", uid}}}, {"spec", {{"minMember", size}}}});
  }
  /// Adds pod ns/`name`, with the UID "u-" and the name unless another is given.
  void waits(const std::string& name, Json more = Json::object()) { waiting_pod(member(name, std::move(more))); }
  void placed(const std::string& name, std::int64_t job, const std::string& on, bool bound = true, Json more = Json::object()) {
    more = member(name, std::move(more));
    more["spec"]["affinity"] = Json::parse(R"({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
      {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In"}]}]}}})");
    more["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0]
        ["matchFields"][0]["values"] = Json::array({on});
    more["spec"]["tolerations"].push_back(
        {{"key", kTolerationPlacedFor}, {"operator", "Equal"}, {"value", placed_for_value({job, submitted(job)})}});
    more["metadata"]["labels"][std::string(kLabelJobId)] = std::to_string(job);
    more["metadata"]["annotations"][std::string(kAnnotationNode)] = on;
    if (bound) more["spec"]["nodeName"] = on;
    pod(more);
  }
  /// Adds a job of the group, submitted for the pods with these names.
  slurm::Job& gang(std::int64_t id, const std::string& state, const std::vector<std::string>& names,
                   std::vector<std::string> on = {"node-1", "node-2", "node-3"}, const std::string& root = "g",
                   int attempt = 1) {
    slurm::Job& out = job(id, state);
    if (out.holds_nodes()) out.nodes = std::move(on);
    Json pods = Json::array();
    for (const std::string& name : names) pods.push_back({{"ns", "ns"}, {"name", name}, {"uid", "u-" + name}});
    const Json more{{"pods", pods}, {"group", {{"ns", key.ns}, {"name", key.name}}}};
    change_details(out, [&](slurm::JobDetails& details) {
      details.admin_comment =
          slurm::admin_comment({slurm::Owner::kBridge, bridge::testing::kInstallation, key_of(root, attempt)}, more);
    });
    return out;
  }
  /// Adds the API server's live list of the pods of a job as a fact. `pods`: their UIDs and phases.
  void live(std::int64_t id, const std::vector<std::pair<std::string, std::string>>& pods = {}) {
    Json items = Json::array();
    const Json record{{"key", kTolerationPlacedFor}, {"value", placed_for_value({id, submitted(id)})}};
    for (const auto& [uid, phase] : pods)
      items.push_back(
          {{"metadata", {{"uid", uid}}}, {"spec", {{"tolerations", Json::array({record})}}}, {"status", {{"phase", phase}}}});
    fact("pods of job " + std::to_string(id), Json::object({{"items", items}}));
  }

  /// Returns the nodes that the plan places pods on, by the names of the pods.
  std::map<std::string, std::string> seats() {
    std::map<std::string, std::string> out;
    for (const plan::Step& step : steps_of(plan())) {
      if (step.id.verb != "place") continue;
      const Json act = step.act->describe();
      for (const Json& op : act.at("patch")) {
        const Json value = op.value("value", Json());
        const std::string annotation(kAnnotationNode);
        if (value.is_object() && value.contains(annotation)) out[step.id.name.substr(3)] = value.at(annotation);
      }
    }
    return out;
  }
  /// Returns the conditions SlurmQueued that the plan writes, as "Reason: message", by the names of the pods.
  std::map<std::string, std::string> told() {
    std::map<std::string, std::string> out;
    for (const plan::Step& step : steps_of(plan())) {
      if (step.id.verb != "report") continue;
      const Json act = step.act->describe();
      for (const Json& one : act.at("patch").at("status").at("conditions")) {
        if (one.at("type") == kConditionQueued)
          out[step.id.name.substr(3)] = one.at("reason").get<std::string>() + ": " + one.at("message").get<std::string>();
      }
    }
    return out;
  }
  std::vector<std::string> needs() {
    std::vector<std::string> out;
    const plan::Plan made = plan();
    for (const plan::Need& need : made.needs()) out.push_back(need.id);
    return out;
  }

 private:
  static Json member(const std::string& name, Json more) {
    Json& meta = more["metadata"];
    meta["name"] = name;
    if (!meta.contains("uid")) meta["uid"] = "u-" + name;
    meta["labels"][std::string(kLabelPodGroup)] = "train";
    return more;
  }
};

}  // namespace bridge::gangs::testing
