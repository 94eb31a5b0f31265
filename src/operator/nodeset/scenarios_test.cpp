// Runs the scenarios of tests/scenarios/nodeset: a small world, what happens in it, and what the NodeSet's plans do about it.
//
// clang-format off
//   spec: {replicas: 3}              # of NodeSet default/cpu, Controller demo
//   workers: [0, 1, 2]               # ordinals of workers that run, are ready and registered
//   steps:
//     - say: what happens
//       do:                          # any of these, in order
//         - set: {replicas: 1}       # the user edits the spec
//         - start: true              # pending pods run and register
//         - finish: true             # terminating pods go
//         - job: cpu-0               # a job starts there (or `suspended: cpu-0`); jobs are numbered from 1
//         - waits_for: cpu-0         # a job waits for that node by its name
//         - end: 1                   # job 1 ends
//         - node: {name: cpu-1, state: IDLE+DRAIN, reason: bad disk, comment: "...", features: [cpu]}
//         - forget: cpu-1            # Slurm loses the node
//         - pod: {name: cpu-1, phase: Failed, ready: false, annotations: {...}, node: kube-1, waiting: ImagePullBackOff}
//         - user_deletes: cpu-1      # kubectl delete pod
//         - kube_node: {name: kube-1, unschedulable: true, reason: "..."}
//         - slurm: away              # or stale, babbles, answers
//         - partitions: [cpu]        # what slurmctld has loaded
//         - partition_refusal: words # of slurmctld, that goes on without spec.partition.config; "": none
//         - controller: absent       # or unreadable, deleting, draining, ephemeral, present
//         - stopped: true            # the Controller's stop switch
//         - delete: true             # kubectl delete nodeset; `orphan: true` with --cascade=orphan
//         - fail: {step: create, code: Forbidden, message: ...}   # steps whose id begins so
//         - mend: true
//         - advance: 1000            # milliseconds
//         - restart: true            # a new process: outcomes, and since when what is seen, are forgotten
//       run: settle                  # until nothing is left to do (default); once; none; or so many passes
//       expect:
//         did: [ids]                 # in order, without status, events, revisions, reports and comments; "*": anything
//         did_not: [ids]             # of all steps
//         conditions: {Ready: "True Ready *"}
//         status: {readyReplicas: 3}
//         pods: {cpu-0: Running}     # Pending, Running, Failed, Terminating, (absent); all that are named, and no others
//         nodes: {cpu-0: IDLE+DRAIN slurm-operator*}   # state and reason; all, and no others
//         events: ["Normal ScalingUp*"]
//         wake: 300                  # milliseconds; 0: none
// clang-format on
// After each step no violation may have been seen: a deletion under a job, a foreign drain undone.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "operator/nodeset/pass.hpp"
#include "operator/nodeset/plan.hpp"
#include "operator/nodeset/testing/world.hpp"
#include "operator/testing/scenario.hpp"

namespace op::nodeset::testing {
namespace {

using core::Json;
using op::testing::check_keys;
using op::testing::code_of;
using op::testing::found_of;
using op::testing::from_yaml;
using op::testing::holds;
using op::testing::lines;
using op::testing::matches;
using op::testing::only_item;
using op::testing::run_of;
using op::testing::unknown;

void set_state(slurm::Node& node, const std::string& text) {
  std::istringstream words(text);
  std::getline(words, node.state.base, '+');
  node.state.flags.clear();
  for (std::string flag; std::getline(words, flag, '+');) node.state.flags.insert(flag);
}

std::string text_of(const slurm::Node& node) {
  std::string out = node.state.base;
  for (const std::string& flag : node.state.flags) out += "+" + flag;
  return node.reason.empty() ? out : out + " " + node.reason;
}

slurm::Snapshot::Health health_of(const std::string& word) {
  if (word == "answers") return slurm::Snapshot::Health::kComplete;
  if (word == "stale") return slurm::Snapshot::Health::kStale;
  if (word == "away") return slurm::Snapshot::Health::kNone;
  unknown(word);
}

bool is_report(const std::string& id) {
  for (const char* prefix : {"status", "event ", "create ControllerRevision", "delete ControllerRevision",
                             "renew ControllerRevision", "report ", "comment ", "mark "}) {
    if (id.starts_with(prefix)) return true;
  }
  return false;
}

class NodeSetScenario : public ::testing::TestWithParam<std::string> {
 protected:
  World world_;
  plan::Plan last_;

  void put_pod(const Json& want) {
    check_keys(want, {"name", "phase", "node", "waiting", "init", "slurmd", "ready", "annotations"});
    kube::PodRecord& pod = world_.pod(want["name"]);
    if (want.contains("phase")) pod.phase = want["phase"];
    if (want.contains("node")) pod.node_name = want["node"];
    if (want.contains("waiting")) {
      kube::ContainerState& slurmd = pod.containers.emplace_back();
      slurmd.name = "slurmd";
      slurmd.waiting_reason = want["waiting"];
    }
    if (want.contains("init")) {
      if (want["init"] != "started") unknown(want["init"].dump());
      kube::ContainerState& init = pod.containers.emplace_back();
      init.name = "wait";
      init.init = init.started_once = true;
    }
    if (want.contains("slurmd")) {
      if (want["slurmd"] != "started") unknown(want["slurmd"].dump());
      kube::ContainerState& slurmd = pod.containers.emplace_back();
      slurmd.name = "slurmd";
      slurmd.started_once = true;
    }
    if (want.contains("ready")) {
      for (kube::PodCondition& condition : pod.conditions) {
        if (condition.type == "Ready") condition.status = want["ready"].get<bool>() ? "True" : "False";
      }
    }
    const Json annotations = want.value("annotations", Json::object());
    for (const auto& [key, value] : annotations.items()) {
      if (value.is_null()) {
        pod.meta.annotations.erase(key);
      } else {
        pod.meta.annotations[key] = value.is_string() ? value.get<std::string>() : value.dump();
      }
    }
  }

  void put_node(const Json& want) {
    check_keys(want, {"name", "state", "reason", "comment", "features"});
    slurm::Node& node = world_.add_node(want["name"]);
    if (want.contains("state")) set_state(node, want["state"]);
    if (want.contains("reason")) node.reason = want["reason"];
    if (want.contains("comment")) node.comment = want["comment"];
    if (want.contains("features")) node.features = want["features"].get<std::vector<std::string>>();
  }

  void act(const std::string& verb, const Json& value) {
    if (verb == "set") {
      for (const auto& [field, to] : value.items()) world_.edit(field, to);
    } else if (verb == "start") {
      world_.start_pods();
    } else if (verb == "finish") {
      world_.finish_pods();
    } else if (verb == "job") {
      world_.add_job({value.get<std::string>()});
    } else if (verb == "suspended") {
      world_.add_job({value.get<std::string>()}, "SUSPENDED");
    } else if (verb == "waits_for") {
      world_.jobs[world_.add_job({}, "PENDING")].required_nodes = value.get<std::string>();
    } else if (verb == "end") {
      world_.end_job(value);
    } else if (verb == "node") {
      put_node(value);
    } else if (verb == "forget") {
      world_.nodes.erase(value.get<std::string>());
    } else if (verb == "pod") {
      put_pod(value);
    } else if (verb == "user_deletes") {
      world_.user_deletes(value);
    } else if (verb == "deleted_without_pre_stop") {
      world_.deleted_without_pre_stop(value);
    } else if (verb == "vanish") {
      world_.pods.erase(value.get<std::string>());
    } else if (verb == "kube_node") {
      check_keys(value, {"name", "unschedulable", "reason", "ready"});
      world_.kube_nodes[value["name"]] = {value.value("unschedulable", false), value.value("reason", ""),
                                          value.value("ready", true)};
    } else if (verb == "slurm") {
      world_.slurm_readable = value != "babbles";
      world_.health = world_.slurm_readable ? health_of(value) : slurm::Snapshot::Health::kStale;
    } else if (verb == "partitions") {
      world_.partitions = value.get<std::set<std::string>>();
    } else if (verb == "partition_refusal") {
      world_.partition_refusal = value;
    } else if (verb == "controller") {
      put_controller(value);
    } else if (verb == "stopped") {
      world_.stopped = value;
    } else if (verb == "delete" || verb == "orphan") {
      world_.nodeset["metadata"]["deletionTimestamp"] = core::format_rfc3339(world_.now);
      if (verb == "orphan") world_.nodeset["metadata"]["finalizers"].push_back("orphan");
    } else if (verb == "fail") {
      check_keys(value, {"step", "code", "message"});
      world_.refuse[value["step"]] = {code_of(value["code"]), value["message"], 0, {}, {}};
    } else if (verb == "mend") {
      world_.refuse.clear();
    } else if (verb == "advance") {
      world_.advance(core::Duration{value.get<long long>()});
    } else if (verb == "restart") {
      world_.restart();
    } else if (verb == "slurmctld_restarts") {
      world_.controller->ready_since = world_.now;
    } else {
      unknown(verb);
    }
  }

  void put_controller(const std::string& how) {
    const ControllerView view = world_.controller.value_or(*World().controller);
    world_.controller = view;
    world_.controller_error.clear();
    if (how == "absent") {
      world_.controller.reset();
    } else if (how == "unreadable") {
      world_.controller.reset();
      world_.controller_error = "Controller demo cannot be read: spec.x";
    } else if (how == "deleting" || how == "draining") {
      world_.controller->meta.deletion_timestamp = world_.now;
      world_.controller->drain_on_deletion = how == "draining";
    } else if (how == "ephemeral") {
      world_.controller->state_since = world_.now;
    } else if (how != "present") {
      unknown(how);
    }
  }

  void run(const op::testing::Run& how) {
    world_.done.clear();
    world_.events.clear();
    for (int i = 0; i < how.passes; ++i) {
      last_ = plan_nodeset(world_.observe());
      const bool nothing = world_.run(last_) == 0;
      if (nothing) return;
      if (i + 1 < how.passes) world_.advance(core::Duration{300});
    }
    if (how.must_rest) FAIL() << "it does not come to rest:\n" << lines(world_.done) << last_.describe().dump(1);
  }

  void expect_did(const Json& want) {
    std::vector<std::string> did;
    for (const std::string& id : world_.done) {
      if (!is_report(id)) did.push_back(id);
    }
    const auto wanted = want.get<std::vector<std::string>>();
    const bool same = std::equal(wanted.begin(), wanted.end(), did.begin(), did.end(),
                                 [](const std::string& pattern, const std::string& id) { return matches(pattern, id); });
    EXPECT_TRUE(same) << "wanted:\n" << lines(wanted) << "did:\n" << lines(did);
  }

  void expect_conditions(const Json& want) {
    for (const auto& [type, value] : want.items()) {
      const std::string told = world_.condition(type), message = world_.message(type);
      std::optional<std::string> text;
      if (!told.empty()) text = told + (message.empty() ? "" : " " + message);
      EXPECT_TRUE(holds(value.get<std::string>(), text)) << type << found_of(value, text);
    }
  }

  void expect_pods(const Json& want) {
    for (const auto& [name, pod] : world_.pods) EXPECT_TRUE(want.contains(name)) << "unexpected pod " << name;
    for (const auto& [name, state] : want.items()) {
      const auto it = world_.pods.find(name);
      std::optional<std::string> found;
      if (it != world_.pods.end()) found = it->second.meta.terminating() ? "Terminating" : it->second.phase;
      EXPECT_TRUE(holds(state.get<std::string>(), found)) << name << found_of(state, found);
    }
  }

  void expect_nodes(const Json& want) {
    for (const auto& [name, node] : world_.nodes) EXPECT_TRUE(want.contains(name)) << "unexpected node " << name;
    for (const auto& [name, state] : want.items()) {
      const auto it = world_.nodes.find(name);
      std::optional<std::string> found;
      if (it != world_.nodes.end()) found = text_of(it->second);
      EXPECT_TRUE(holds(state.get<std::string>(), found)) << name << found_of(state, found);
    }
  }

  void expect(const std::string& what, const Json& want) {
    if (what == "did") {
      expect_did(want);
    } else if (what == "did_not") {
      for (const Json& pattern : want) {
        for (const std::string& id : world_.done) EXPECT_FALSE(matches(pattern.get<std::string>(), id)) << "did: " << id;
      }
    } else if (what == "conditions") {
      expect_conditions(want);
    } else if (what == "status") {
      for (const auto& [field, value] : want.items()) EXPECT_EQ(world_.status().value(field, Json()), value) << field;
    } else if (what == "pods") {
      expect_pods(want);
    } else if (what == "nodes") {
      expect_nodes(want);
    } else if (what == "protected") {
      Json found = Json::array();
      for (const auto& [name, pod] : world_.pods) {
        if (is_protected(pod)) found.push_back(name);
      }
      EXPECT_EQ(found, want);
    } else if (what == "events") {
      ASSERT_EQ(world_.events.size(), want.size()) << lines(world_.events);
      for (std::size_t i = 0; i < want.size(); ++i) {
        EXPECT_TRUE(matches(want[i].get<std::string>(), world_.events[i])) << world_.events[i];
      }
    } else if (what == "wake") {
      EXPECT_EQ(last_.wake() ? last_.wake()->count() : 0, want.get<long long>());
    } else {
      unknown(what);
    }
  }
};

TEST_P(NodeSetScenario, Runs) {
  const Json scenario = from_yaml(YAML::LoadFile(GetParam()));
  check_keys(scenario, {"spec", "workers", "steps"});
  world_ = World(scenario.value("spec", Json::object()));
  for (const Json& ordinal : scenario.value("workers", Json::array())) world_.add_pod(ordinal);
  for (const Json& step : scenario.at("steps")) {
    SCOPED_TRACE(step.value("say", "a step"));
    check_keys(step, {"say", "do", "run", "expect"});
    for (const Json& action : step.value("do", Json::array())) {
      const auto [verb, value] = only_item(action);
      act(verb, value);
    }
    run(run_of(step));
    const Json wanted = step.value("expect", Json::object());
    for (const auto& [what, want] : wanted.items()) expect(what, want);
    EXPECT_TRUE(world_.violations.empty()) << lines(world_.violations);
    if (HasFatalFailure()) return;
  }
}

std::vector<std::string> files() {
  std::vector<std::string> out;
  const std::filesystem::path folder = "tests/scenarios/nodeset";
  if (!std::filesystem::exists(folder)) return out;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string name_of(const ::testing::TestParamInfo<std::string>& info) {
  std::string out = std::filesystem::path(info.param).stem().string();
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

// Run somewhere else than in the repository's root, there would be no scenario at all.
TEST(NodeSetScenarios, AreFound) {
  EXPECT_GE(files().size(), 10U);
}

INSTANTIATE_TEST_SUITE_P(Scenarios, NodeSetScenario, ::testing::ValuesIn(files()), name_of);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(NodeSetScenario);

}  // namespace
}  // namespace op::nodeset::testing
