#include "operator/testing/fields.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "operator/nodeset/plan.hpp"
#include "operator/nodeset/testing/world.hpp"

namespace op::nodeset {
namespace {

using core::Json;

nodeset::testing::World begin(const Json& spec) {
  nodeset::testing::World world;
  world.nodeset()["spec"] = spec;
  world.add_host("host-1", {{"rack", "one"}});
  world.put({{"kind", "Secret"}, {"metadata", {{"name", "mine"}}}, {"data", {{"k", "QUFBQQ=="}}}});
  return world;
}

/// Returns all plans of a history in which workers start, get a new template while jobs run, and are scaled in, and in which
/// one record has no pod.
Json plans_of(const Json& spec) {
  nodeset::testing::World world = begin(spec);
  Json out = Json::array();
  const auto pass = [&] {
    int quiet = 0;
    for (int i = 0; i < 8 && quiet < 2; ++i) {
      const plan::Plan plan = plan_nodeset(world.observe());
      out.push_back(plan.describe());
      quiet = world.run(plan) == 0 ? quiet + 1 : 0;
      world.advance(core::Duration{1000});
    }
  };
  pass();
  world.start_pods();
  pass();
  std::vector<std::int64_t> jobs;
  if (!world.nodes.empty()) {
    for (const std::string& node : {world.nodes.begin()->first, world.nodes.rbegin()->first})
      jobs.push_back(world.add_job({node}));
  }
  world.nodeset()["spec"]["template"]["metadata"]["annotations"]["site"] = "new";
  world.edit("template", world.nodeset()["spec"]["template"]);
  for (int i = 0; i < 4; ++i) {
    pass();
    world.finish_pods();
    pass();
    world.start_pods();
    if (i == 1) {
      for (const std::int64_t job : jobs) world.end_job(job);
    }
  }
  slurm::Node& left = world.add_node("cpu-7");
  left.state.base = "DOWN";
  left.features = {"cpu"};
  world.edit("replicas", 1);
  pass();
  world.advance(core::Duration{3'600'000});
  pass();
  return out;
}

/// Returns the state when nothing is left to do. The result lacks times, and it lacks claims, because this test never deletes
/// claims. Runs several rounds, because pins appear only after a while.
Json settled(nodeset::testing::World& world) {
  for (int i = 0; i < 4; ++i) {
    world.settle();
    world.finish_pods();
    world.start_pods();
    world.advance(core::Duration{60'000});
  }
  world.settle();
  Json out;
  for (const auto& [name, pod] : world.pods) {
    out["pods"][name] = {pod.meta.labels, pod.image, pod.hostname, pod.secrets};
  }
  const auto number = [](const auto& revision) { return core::get_int(revision.second, {"revision"}); };
  const std::map<std::string, Json> revisions = world.revisions();
  out["revision"] = std::ranges::max_element(revisions, {}, number)->second["data"];
  for (const auto& [name, node] : world.nodes) {
    out["nodes"][name] = {node.state.base, node.state.flags, node.reason,  node.comment,
                          node.features,   node.weight,      node.topology};
  }
  out["status"] = world.status();
  return op::testing::without_versions(out);
}

op::testing::State ask(nodeset::testing::World& world, const Json& spec) {
  world.nodeset()["spec"] = spec;
  world.edit("replicas", spec.value("replicas", 1));
  static std::map<std::string, Json> plans;
  Json& plan = plans[spec.dump()];
  if (plan.is_null()) {
    static const std::regex kTold(", FieldsNotActedOn=True \\(NotActedOn\\)");
    const std::string text = std::regex_replace(plans_of(spec).dump(), kTold, "");
    plan = op::testing::without_versions(Json::parse(text));
  }
  return {{settled(world), plan}, world.message("FieldsNotActedOn")};
}

const op::testing::States kStates = op::testing::in_turn<nodeset::testing::World>(begin, ask);

TEST(Fields, EachOfANodeSetHasAnEffectThatIsTakenBack) {
  const Json base = Json::parse(R"({
    "controllerRef": {"name": "demo"}, "replicas": 3, "slurmd": {"image": "x:26.05"}, "logfile": {"image": "x:26.05"},
    "ssh": {"enabled": true, "extraSshdConfig": "Banner none", "sssdConfRef": {"name": "mine", "key": "k"}},
    "template": {"metadata": {"labels": {"b": "c"}, "annotations": {"d": "e"}}, "spec": {"nodeSelector": {"f": "g"}}},
    "extraConf": "Weight=3", "partition": {"enabled": true, "config": "State=UP"},
    "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}],
    "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}},
    "drainPolicy": {"timeout": "1m", "onTimeout": "Cancel"}, "revisionHistoryLimit": 2,
    "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Delete"}, "minReadySeconds": 5,
    "ordinalPadding": 3, "pinToNode": true, "nodeFeatureLabels": ["rack"], "workloadDisruptionPolicy": "WhenBusy",
    "oversubscribeNode": true})");
  const op::testing::Findings wanted{
      {"ssh.sssdConfRef.optional", "told"},
      // This test has only two revisions, and both are kept.
      {"revisionHistoryLimit", "no effect when it changes"},
      // The first has an effect with ScheduledUpdate, the second with DaemonSet: see scenarios scheduled* and daemonset*.
      {"updateStrategy.scheduledUpdate", "no effect"},
      {"pruneSlurmNodeRecords", "no effect"},
      // The controller of Controllers creates the partition: see the scenario nodeset_joins.
      {"partition.config", "no effect when it is set"},
      // This has an effect with the labels of real nodes: see workers_know_their_kubernetes_nodes in tests/e2e/run.py.
      {"nodeFeatureLabels", "no effect"}};
  EXPECT_EQ(op::testing::field_findings("NodeSet", base, kStates), wanted);
}

}  // namespace
}  // namespace op::nodeset
