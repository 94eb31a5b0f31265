#include "sim/kube/sim_kube.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/loop.hpp"

namespace sim {
namespace {

using core::Json;
using namespace std::chrono_literals;
using testing::ElementsAre;
namespace res = kube::resources;

/// Parses a deeply nested document from text. With a nested initializer list instead, sanitizer builds would take minutes and
/// gigabytes.
Json j(const char* text) {
  return *core::parse_json(text);
}

struct SimKubeTest : testing::TestWithParam<std::uint64_t> {
  SimLoop loop{GetParam()};
  SimKube kube{loop, loop.random().fork()};
  KubeApi& api = kube.api();

  SimKubeTest() {
    kube.add_namespace("ns");
    for (const char* node : {"n1", "n2", "n3"}) kube.nodes().add_node(node);
  }

  static Json template_of(Json extra = Json::object()) {
    Json out{{"metadata", {{"labels", {{"app", "x"}}}}},
             {"spec", {{"containers", Json::array({Json{{"name", "c"}, {"image", "i:1"}}})}}}};
    out.merge_patch(extra);
    return out;
  }
  void create_set(int replicas, Json extra = Json::object()) {
    Json set{{"metadata", {{"name", "s"}, {"namespace", "ns"}}},
             {"spec",
              {{"replicas", replicas},
               {"serviceName", "s"},
               {"selector", {{"matchLabels", {{"app", "x"}}}}},
               {"template", template_of()}}}};
    set.merge_patch(extra);
    const auto made = api.create(res::kStatefulSet, set);
    ASSERT_TRUE(made) << made.error();
  }
  void create_pod(const std::string& name, Json extra = Json::object()) {
    Json pod = template_of(std::move(extra));
    pod["metadata"]["name"] = name;
    pod["metadata"]["namespace"] = "ns";
    const auto made = api.create(res::kPod, pod);
    ASSERT_TRUE(made) << made.error();
  }
  const Json* pod(const std::string& name) { return api.peek(res::kPod, {"ns", name}); }
  bool ready(const std::string& name) { return pod(name) != nullptr && is_ready(*pod(name)); }
  std::int64_t restarts(const std::string& name) {
    return core::get_int((*pod(name))["status"]["containerStatuses"][0], {"restartCount"});
  }
  std::vector<std::string> pods() {
    std::vector<std::string> out;
    for (const auto& [key, stored] : api.store().all("pods")) out.push_back(key.name);
    return out;
  }
  std::string waiting_reason(const std::string& name) {
    const Json* statuses = pod(name) == nullptr ? nullptr : core::find(*pod(name), {"status", "containerStatuses"});
    return statuses == nullptr ? "" : core::get_string((*statuses)[0], {"state", "waiting", "reason"});
  }
};
INSTANTIATE_TEST_SUITE_P(Seeds, SimKubeTest, testing::Range<std::uint64_t>(1, 6));

TEST_P(SimKubeTest, AStatefulSetBecomesReadyInOrderAndShrinksFromTheTop) {
  create_set(3, j(R"({"spec": {"volumeClaimTemplates":
      [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]}})"));
  ASSERT_TRUE(loop.run_until([&] { return ready("s-2"); }, 120s));
  EXPECT_TRUE(ready("s-0") && ready("s-1"));
  EXPECT_EQ(core::get_string(*pod("s-1"), {"spec", "hostname"}), "s-1");
  ASSERT_NE(api.peek(res::kPersistentVolumeClaim, {"ns", "data-s-2"}), nullptr);
  ASSERT_TRUE(loop.run_until(
      [&] {
        return core::get_int(*api.peek(res::kStatefulSet, {"ns", "s"}), {"status", "readyReplicas"}) == 3;
      },
      10s));
  api.modify(res::kStatefulSet, {"ns", "s"}, [](Json& s) { s["spec"]["replicas"] = 1; });
  ASSERT_TRUE(loop.run_until([&] { return pods() == std::vector<std::string>{"s-0"}; }, 120s));
}

TEST_P(SimKubeTest, AStatefulSetRollsAndReplacesWhatFails) {
  create_set(2);
  ASSERT_TRUE(loop.run_until([&] { return ready("s-1"); }, 60s));
  const Json uid = (*pod("s-0"))["metadata"]["uid"];
  api.modify(res::kStatefulSet, {"ns", "s"}, [](Json& s) { s["spec"]["template"]["spec"]["containers"][0]["image"] = "i:2"; });
  ASSERT_TRUE(loop.run_until([&] { return ready("s-0") && (*pod("s-0"))["spec"]["containers"][0]["image"] == "i:2"; }, 120s));
  EXPECT_NE((*pod("s-0"))["metadata"]["uid"], uid);
  const Json second = (*pod("s-0"))["metadata"]["uid"];
  kube.nodes().fail_pod({"ns", "s-0"});
  ASSERT_TRUE(loop.run_until([&] { return ready("s-0") && (*pod("s-0"))["metadata"]["uid"] != second; }, 60s));
}

TEST_P(SimKubeTest, AStatefulSetWhosePodIsRefusedSaysSoInAnEventAndMends) {
  bool full = true;
  api.add_admission([&](const AdmissionRequest& request) -> std::optional<Refusal> {
    if (!full || request.resource != res::kPod || request.operation != "CREATE") return {};
    return make_status(403, "Forbidden", "exceeded quota", &request.resource, request.key.name);
  });
  create_set(1);
  const auto events = [&] { return api.store().all("events.events.k8s.io"); };
  const auto counted = [&] { return core::get_int(events().begin()->second->body, {"deprecatedCount"}); };
  ASSERT_TRUE(loop.run_until([&] { return !events().empty() && counted() > 1; }, 30s));
  ASSERT_EQ(events().size(), 1U) << "the same refusal is one event";
  const Json& event = events().begin()->second->body;
  EXPECT_EQ(event["reason"], "FailedCreate");
  EXPECT_EQ(event["note"], "create Pod s-0 in StatefulSet s failed error: exceeded quota");
  EXPECT_EQ(event["regarding"]["uid"], (*api.peek(res::kStatefulSet, {"ns", "s"}))["metadata"]["uid"]);
  full = false;
  EXPECT_TRUE(loop.run_until([&] { return ready("s-0"); }, 60s));
}

TEST_P(SimKubeTest, ADeploymentKeepsItsPodsThroughAChange) {
  ASSERT_TRUE(
      api.create(res::kDeployment,
                 {{"metadata", {{"name", "d"}, {"namespace", "ns"}}},
                  {"spec", {{"replicas", 2}, {"selector", {{"matchLabels", {{"app", "x"}}}}}, {"template", template_of()}}}}));
  const auto settled = [&](const char* image) {
    return [this, image] {
      int good = 0;
      for (const auto& [key, stored] : api.store().all("pods")) {
        if (stored->body["spec"]["containers"][0]["image"] != image) return false;
        good += is_ready(stored->body) ? 1 : 0;
      }
      return good == 2;
    };
  };
  ASSERT_TRUE(loop.run_until(settled("i:1"), 60s));
  api.modify(res::kDeployment, {"ns", "d"}, [](Json& d) { d["spec"]["template"]["spec"]["containers"][0]["image"] = "i:2"; });
  ASSERT_TRUE(loop.run_until(settled("i:2"), 120s));
}

TEST_P(SimKubeTest, GarbageFollowsItsOwner) {
  create_set(1);
  ASSERT_TRUE(loop.run_until([&] { return ready("s-0"); }, 60s));
  ASSERT_TRUE(api.remove(res::kStatefulSet, {"ns", "s"}, {.propagation = "Background"}));
  EXPECT_EQ(api.peek(res::kStatefulSet, {"ns", "s"}), nullptr);
  EXPECT_TRUE(loop.run_until([&] { return pods().empty(); }, 60s));
}

TEST_P(SimKubeTest, ForegroundWaitsForWhatItOwns) {
  create_set(1);
  ASSERT_TRUE(loop.run_until([&] { return ready("s-0"); }, 60s));
  ASSERT_TRUE(api.remove(res::kStatefulSet, {"ns", "s"}, {.propagation = "Foreground"}));
  EXPECT_NE(api.peek(res::kStatefulSet, {"ns", "s"}), nullptr);
  ASSERT_TRUE(loop.run_until([&] { return api.peek(res::kStatefulSet, {"ns", "s"}) == nullptr; }, 60s));
  EXPECT_TRUE(pods().empty());
}

TEST_P(SimKubeTest, OrphansStay) {
  create_set(1);
  ASSERT_TRUE(loop.run_until([&] { return ready("s-0"); }, 60s));
  ASSERT_TRUE(api.remove(res::kStatefulSet, {"ns", "s"}, {.propagation = "Orphan"}));
  ASSERT_TRUE(loop.run_until([&] { return api.peek(res::kStatefulSet, {"ns", "s"}) == nullptr; }, 60s));
  loop.run_for(30s);
  ASSERT_TRUE(ready("s-0"));
  EXPECT_FALSE((*pod("s-0"))["metadata"].contains("ownerReferences"));
}

TEST_P(SimKubeTest, ANamespaceTakesEverythingWithIt) {
  create_set(2);
  ASSERT_TRUE(loop.run_until([&] { return ready("s-1"); }, 60s));
  ASSERT_TRUE(api.remove(res::kNamespace, {"", "ns"}));
  ASSERT_TRUE(loop.run_until([&] { return api.peek(res::kNamespace, {"", "ns"}) == nullptr; }, 120s));
  EXPECT_TRUE(pods().empty());
}

TEST_P(SimKubeTest, AMissingImageIsSaidAndMends) {
  kube.nodes().add_image("other:1");
  create_pod("p");
  ASSERT_TRUE(loop.run_until([&] { return waiting_reason("p") == "ErrImagePull"; }, 30s));
  ASSERT_TRUE(loop.run_until([&] { return waiting_reason("p") == "ImagePullBackOff"; }, 30s));
  kube.nodes().add_image("i:1");
  EXPECT_TRUE(loop.run_until([&] { return ready("p"); }, 60s));
}

TEST_P(SimKubeTest, AMissingSecretIsSaidAndMends) {
  create_pod("p", j(R"({"spec": {"containers": [{"name": "c", "image": "i:1",
      "env": [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "key", "key": "k"}}}]}]}})"));
  ASSERT_TRUE(loop.run_until([&] { return waiting_reason("p") == "CreateContainerConfigError"; }, 30s));
  ASSERT_TRUE(api.create(res::kSecret, {{"metadata", {{"name", "key"}, {"namespace", "ns"}}}, {"stringData", {{"k", "v"}}}}));
  EXPECT_TRUE(loop.run_until([&] { return ready("p"); }, 60s));
}

/// A process under the test's control.
struct Scripted {
  bool started = true;
  bool ready = false;
  bool alive = true;
  std::optional<int> code;
  bool slow_end = false;
  std::vector<std::string> calls;
};
class ScriptedProcess final : public Process {
 public:
  ScriptedProcess(Scripted& script, PodView pod) : script_(script), pod_(std::move(pod)) { script_.calls.push_back("start"); }
  ~ScriptedProcess() override { script_.calls.push_back("end"); }
  [[nodiscard]] bool started() const override { return script_.started; }
  [[nodiscard]] bool ready() const override { return script_.ready; }
  [[nodiscard]] bool alive() const override { return script_.alive; }
  [[nodiscard]] std::optional<int> exit_code() const override { return script_.code; }
  void pre_stop() override { script_.calls.push_back("preStop"); }
  void terminate() override { script_.calls.push_back("term"); }
  [[nodiscard]] bool ends_at_once() const override { return !script_.slow_end; }
  void files_changed() override { script_.calls.push_back("files " + pod_.file("c", "/etc/app/conf").value_or("-")); }
  [[nodiscard]] const PodView& pod() const { return pod_; }

 private:
  Scripted& script_;
  PodView pod_;
};

struct ProcessTest : SimKubeTest {
  Scripted script;
  std::map<std::string, Scripted> scripts;  ///< The scripts by container, if there are several.
  std::vector<std::string> started;
  ~ProcessTest() override { kube.nodes().end_processes(); }  // processes call the scripts during their destruction
  void use_script(Json container, Json pod_extra = Json::object()) {
    kube.nodes().set_process_factory([this](PodView pod, const std::string&) -> std::unique_ptr<Process> {
      return std::make_unique<ScriptedProcess>(script, std::move(pod));
    });
    container["name"] = "c";
    container["image"] = "i:1";
    Json extra{{"spec", {{"containers", Json::array({container})}}}};
    extra["spec"].merge_patch(pod_extra);
    create_pod("p", extra);
    ASSERT_TRUE(loop.run_until([&] { return !script.calls.empty(); }, 60s));
  }
  const PodView& process_view() { return static_cast<ScriptedProcess*>(kube.nodes().find_process({"ns", "p"}, "c"))->pod(); }
};
INSTANTIATE_TEST_SUITE_P(Seeds, ProcessTest, testing::Range<std::uint64_t>(1, 4));

TEST_P(ProcessTest, ReadinessFollowsTheProbe) {
  use_script({{"readinessProbe", {{"httpGet", {{"port", 1}}}}}});
  loop.run_for(20s);
  EXPECT_FALSE(ready("p"));
  EXPECT_EQ((*pod("p"))["status"]["phase"], "Running");
  script.ready = true;
  process_view().changed();
  EXPECT_TRUE(loop.run_until([&] { return ready("p"); }, 5s));
  script.ready = false;
  process_view().changed();
  EXPECT_TRUE(loop.run_until([&] { return !ready("p"); }, 5s));
}

TEST_P(ProcessTest, TheApiServerHearsLaterOfWhatRuns) {
  use_script(Json::object());
  EXPECT_FALSE(ready("p")) << "its process runs, and nobody has said so yet";
  EXPECT_TRUE(loop.run_until([&] { return ready("p"); }, 5s));
}

TEST_P(ProcessTest, ExitsAndDeadProcessesAreRestarted) {
  use_script({{"livenessProbe", {{"httpGet", {{"port", 1}}}}}});
  loop.run_for(5s);
  script.code = 1;
  process_view().changed();
  ASSERT_TRUE(loop.run_until([&] { return script.calls.size() == 2; }, 5s));
  script.code.reset();
  ASSERT_TRUE(loop.run_until([&] { return restarts("p") == 1 && ready("p"); }, 60s));
  script.alive = false;
  process_view().changed();
  loop.run_for(15s);
  EXPECT_EQ(script.calls.size(), 3U) << "a probe may fail twice";
  ASSERT_TRUE(loop.run_until([&] { return script.calls.size() == 5; }, 10s));
  EXPECT_THAT(script.calls, ElementsAre("start", "end", "start", "term", "end"));
  script.alive = true;
  ASSERT_TRUE(loop.run_until([&] { return restarts("p") == 2 && ready("p"); }, 60s));
}

TEST_P(ProcessTest, AnAnswerForgetsTheFailuresBeforeIt) {
  use_script({{"livenessProbe", {{"failureThreshold", 6}}}});
  loop.run_for(5s);
  const std::string node = core::get_string(*pod("p"), {"spec", "nodeName"});
  for (int spell = 0; spell < 3; ++spell) {
    kube.nodes().load_node(node, true);
    loop.run_for(25s);
    kube.nodes().load_node(node, false);
    loop.run_for(25s);
  }
  EXPECT_THAT(script.calls, ElementsAre("start")) << "never six in a row";
  kube.nodes().load_node(node, true);
  loop.run_for(49s);
  EXPECT_THAT(script.calls, ElementsAre("start"));
  EXPECT_TRUE(loop.run_until([&] { return script.calls.size() == 2; }, 5s)) << "six in a row";
}

TEST_P(ProcessTest, OtherProbesWaitForTheStartupProbe) {
  script.started = script.alive = false;
  script.ready = true;
  use_script({{"startupProbe", {{"failureThreshold", 4}}},
              {"livenessProbe", {{"failureThreshold", 1}}},
              {"readinessProbe", {{"httpGet", {{"port", 1}}}}}});
  loop.run_for(25s);
  EXPECT_EQ(script.calls.size(), 1U);
  EXPECT_FALSE(ready("p"));
  ASSERT_TRUE(loop.run_until([&] { return restarts("p") == 1; }, 20s)) << "it did not start in time";
  EXPECT_FALSE(ready("p"));
  script.started = script.alive = true;
  process_view().changed();
  EXPECT_TRUE(loop.run_until([&] { return ready("p"); }, 5s));
}

TEST_P(ProcessTest, StopsWithHookGraceAndKill) {
  script.slow_end = true;
  use_script({{"lifecycle", {{"preStop", {{"exec", Json::object()}}}}}}, {{"terminationGracePeriodSeconds", 7}});
  loop.run_for(5s);
  ASSERT_TRUE(api.remove(res::kPod, {"ns", "p"}));
  loop.run_for(5s);
  EXPECT_THAT(script.calls, ElementsAre("start", "preStop", "term"));
  EXPECT_NE(pod("p"), nullptr);
  ASSERT_TRUE(loop.run_until([&] { return pod("p") == nullptr; }, 5s));
  EXPECT_THAT(script.calls, ElementsAre("start", "preStop", "term", "end"));
}

TEST_P(ProcessTest, ATermThatIsHeardEndsAtOnce) {
  script.slow_end = true;
  use_script(Json::object());
  loop.run_for(5s);
  ASSERT_TRUE(api.remove(res::kPod, {"ns", "p"}));
  loop.run_for(1s);
  script.code = 0;
  process_view().changed();
  EXPECT_TRUE(loop.run_until([&] { return pod("p") == nullptr; }, 3s));
}

TEST_P(ProcessTest, SeesItsEnvironment) {
  ASSERT_TRUE(
      api.create(res::kConfigMap, {{"metadata", {{"name", "conf"}, {"namespace", "ns"}}}, {"data", {{"conf", "one"}}}}));
  use_script(
      j(R"({"args": ["-Z", "--conf"],
      "env": [{"name": "A", "value": "1"}, {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
              {"name": "CPUS", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}],
      "resources": {"limits": {"cpu": "1500m"}}, "volumeMounts": [{"name": "v", "mountPath": "/etc/app"}]})"),
      j(R"({"volumes": [{"name": "v", "projected": {"sources": [{"configMap": {"name": "conf"}}]}}], "hostname": "cpu-0"})"));
  const PodView& view_now = process_view();
  EXPECT_EQ(view_now.hostname(), "cpu-0");
  EXPECT_THAT(view_now.args("c"), ElementsAre("-Z", "--conf"));
  EXPECT_EQ(view_now.env("c"), (std::map<std::string, std::string>{{"A", "1"}, {"N", "p"}, {"CPUS", "2"}}));
  EXPECT_EQ(view_now.file("c", "/etc/app/conf"), "one");
  EXPECT_EQ(view_now.file("c", "/etc/app/none"), std::nullopt);

  loop.run_for(5s);
  api.modify(res::kConfigMap, {"ns", "conf"}, [](Json& m) { m["data"]["conf"] = "two"; });
  loop.run_for(20s);
  EXPECT_EQ(script.calls.size(), 1U) << "files follow late";
  api.modify(res::kPod, {"ns", "p"}, [](Json& p) { p["metadata"]["annotations"]["touch"] = "1"; });
  ASSERT_TRUE(loop.run_until([&] { return script.calls.size() == 2; }, 1s)) << "unless the pod changes";
  EXPECT_EQ(script.calls[1], "files two");
  api.modify(res::kConfigMap, {"ns", "conf"}, [](Json& m) { m["data"]["conf"] = "three"; });
  ASSERT_TRUE(loop.run_until([&] { return script.calls.size() == 3; }, 100s));
}

TEST_P(ProcessTest, InitContainersGoFirstAndOneAfterTheOther) {
  kube.nodes().set_process_factory([&](PodView pod, const std::string& name) -> std::unique_ptr<Process> {
    started.push_back(name);
    scripts[name].ready = true;
    return std::make_unique<ScriptedProcess>(scripts[name], std::move(pod));
  });
  create_pod("p", {{"spec",
                    {{"initContainers", Json::array({Json{{"name", "side"}, {"image", "i:1"}, {"restartPolicy", "Always"}},
                                                     Json{{"name", "wait"}, {"image", "i:1"}}})}}}});
  ASSERT_TRUE(loop.run_until([&] { return started.size() == 2; }, 60s));
  loop.run_for(30s);
  EXPECT_THAT(started, ElementsAre("side", "wait"));
  EXPECT_EQ((*pod("p"))["status"]["phase"], "Pending");
  scripts["wait"].code = 0;
  static_cast<ScriptedProcess*>(kube.nodes().find_process({"ns", "p"}, "wait"))->pod().changed();
  ASSERT_TRUE(loop.run_until([&] { return ready("p"); }, 10s));
  EXPECT_THAT(started, ElementsAre("side", "wait", "c"));
}

TEST_P(SimKubeTest, ALostNodeLosesItsPodsSlowly) {
  create_set(1);
  ASSERT_TRUE(loop.run_until([&] { return ready("s-0"); }, 60s));
  const std::string node = core::get_string(*pod("s-0"), {"spec", "nodeName"});
  const Json uid = (*pod("s-0"))["metadata"]["uid"];
  kube.nodes().crash_node(node);
  EXPECT_TRUE(kube.nodes().running().empty());
  loop.run_for(30s);
  EXPECT_TRUE(ready("s-0")) << "nobody knows yet";
  ASSERT_TRUE(loop.run_until([&] { return !ready("s-0"); }, 21s));
  loop.run_for(310s);
  ASSERT_NE(pod("s-0"), nullptr);
  EXPECT_TRUE((*pod("s-0"))["metadata"].contains("deletionTimestamp")) << "and nobody can confirm that it is gone";
  kube.nodes().restart_node(node);
  ASSERT_TRUE(loop.run_until([&] { return ready("s-0") && (*pod("s-0"))["metadata"]["uid"] != uid; }, 90s));
}

TEST_P(SimKubeTest, TaintsEndPodsWhenTheirPatienceDoes) {
  const auto patient = [&](const std::string& name, const Json& seconds) {
    Json toleration{{"key", "node.kubernetes.io/unreachable"}, {"operator", "Exists"}, {"effect", "NoExecute"}};
    if (!seconds.is_null()) toleration["tolerationSeconds"] = seconds;
    create_pod(name, {{"spec", {{"nodeName", "n1"}, {"tolerations", Json::array({toleration})}}}});
  };
  patient("hasty", 5);
  patient("slow", 60);
  patient("steady", nullptr);
  const auto ended = [&](const char* name) {
    return pod(name) == nullptr || (*pod(name))["metadata"].contains("deletionTimestamp");
  };
  ASSERT_TRUE(loop.run_until([&] { return ready("hasty") && ready("slow") && ready("steady"); }, 60s));
  kube.nodes().crash_node("n1");
  ASSERT_TRUE(loop.run_until([&] { return ended("hasty"); }, 60s));
  EXPECT_THAT((*pod("hasty"))["status"]["conditions"].dump(), testing::HasSubstr("DeletionByTaintManager"));
  loop.run_for(30s);
  EXPECT_FALSE(ended("slow"));
  kube.nodes().restart_node("n1");
  loop.run_for(120s);
  EXPECT_FALSE(api.peek(res::kNode, {"", "n1"})->dump().find("taints") != std::string::npos);
  EXPECT_EQ(pod("hasty"), nullptr);
  EXPECT_TRUE(ready("slow")) << "the node was back in time";
  EXPECT_TRUE(ready("steady"));
}

TEST_P(SimKubeTest, ARestartedNodeStartsItsPodsAgain) {
  create_pod("p");
  ASSERT_TRUE(loop.run_until([&] { return ready("p"); }, 60s));
  const std::string node = core::get_string(*pod("p"), {"spec", "nodeName"});
  kube.nodes().crash_node(node);
  loop.run_for(10s);
  kube.nodes().restart_node(node);
  ASSERT_TRUE(loop.run_until([&] { return !kube.nodes().running().empty(); }, 60s));
  loop.run_for(5s);
  EXPECT_TRUE(ready("p"));
  EXPECT_EQ(restarts("p"), 1);
}

TEST_P(SimKubeTest, ACutNodeKeepsRunningAndHearsLater) {
  create_pod("p", {{"spec", {{"terminationGracePeriodSeconds", 1}}}});
  ASSERT_TRUE(loop.run_until([&] { return ready("p"); }, 60s));
  const std::string node = core::get_string(*pod("p"), {"spec", "nodeName"});
  kube.nodes().cut_node(node);
  ASSERT_TRUE(api.remove(res::kPod, {"ns", "p"}));
  loop.run_for(60s);
  EXPECT_EQ(kube.nodes().running().size(), 1U);
  EXPECT_NE(pod("p"), nullptr);
  kube.nodes().heal_node(node);
  ASSERT_TRUE(loop.run_until([&] { return pod("p") == nullptr; }, 30s));
  loop.run_for(1s);
  EXPECT_TRUE(kube.nodes().running().empty());
}

TEST_P(SimKubeTest, PodsOfADeletedNodeAreCollected) {
  create_pod("p");
  ASSERT_TRUE(loop.run_until([&] { return ready("p"); }, 60s));
  kube.nodes().delete_node(core::get_string(*pod("p"), {"spec", "nodeName"}));
  EXPECT_TRUE(loop.run_until([&] { return pod("p") == nullptr; }, 60s));
}

TEST_P(SimKubeTest, ANodeThatIsCreatedAgainSoonEndsItsPods) {
  create_pod("p");
  ASSERT_TRUE(loop.run_until([&] { return ready("p"); }, 60s));
  const std::string node = core::get_string(*pod("p"), {"spec", "nodeName"});
  kube.nodes().delete_node(node);
  ASSERT_TRUE(api.remove(res::kPod, {"ns", "p"}));
  loop.run_for(5s);
  EXPECT_NE(pod("p"), nullptr);
  kube.nodes().add_node(node);
  EXPECT_TRUE(loop.run_until([&] { return pod("p") == nullptr; }, 60s));
}

TEST_P(SimKubeTest, AntiAffinityAndUnschedulableNodesAreHeeded) {
  const Json apart = j(R"({"spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
      [{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}]}}}})");
  api.modify(res::kNode, {"", "n1"}, [](Json& n) { n["spec"]["unschedulable"] = true; });
  for (const char* name : {"a", "b", "c"}) create_pod(name, apart);
  loop.run_for(30s);
  int placed = 0;
  for (const char* name : {"a", "b", "c"}) placed += ready(name) ? 1 : 0;
  EXPECT_EQ(placed, 2);
  api.modify(res::kNode, {"", "n1"}, [](Json& n) { n["spec"].erase("unschedulable"); });
  EXPECT_TRUE(loop.run_until([&] { return ready("a") && ready("b") && ready("c"); }, 30s));
}

TEST_P(SimKubeTest, ServicesHaveTheEndpointsThatAreReady) {
  ASSERT_TRUE(
      api.create(res::kService, {{"metadata", {{"name", "svc"}, {"namespace", "ns"}}},
                                 {"spec", {{"selector", {{"app", "x"}}}, {"ports", Json::array({Json{{"port", 80}}})}}}}));
  create_pod("p");
  const auto addresses = [&] {
    std::vector<bool> out;
    for (const auto& [key, slice] : api.store().all("endpointslices.discovery.k8s.io")) {
      for (const Json& endpoint : slice->body["endpoints"]) out.push_back(endpoint["conditions"]["ready"]);
    }
    return out;
  };
  EXPECT_TRUE(loop.run_until([&] { return addresses() == std::vector<bool>{true}; }, 30s));
  ASSERT_TRUE(api.remove(res::kService, {"ns", "svc"}));
  EXPECT_TRUE(loop.run_until([&] { return addresses().empty(); }, 30s));
}

TEST_P(SimKubeTest, BudgetsCount) {
  ASSERT_TRUE(api.create(res::kPodDisruptionBudget,
                         {{"metadata", {{"name", "b"}, {"namespace", "ns"}}},
                          {"spec", {{"maxUnavailable", 1}, {"selector", {{"matchLabels", {{"app", "x"}}}}}}}}));
  create_set(2);
  ASSERT_TRUE(loop.run_until(
      [&] {
        return core::get_int(*api.peek(res::kPodDisruptionBudget, {"ns", "b"}), {"status", "disruptionsAllowed"}) == 1;
      },
      60s));
  ASSERT_TRUE(api.evict({"ns", "s-0"}, {}));
  EXPECT_FALSE(api.evict({"ns", "s-1"}, {}));
}

TEST_P(SimKubeTest, BudgetsGoByTheScaleOfOwners) {
  const auto owner = api.create(res::kDeployment, j(R"({"metadata": {"name": "d", "namespace": "ns"}, "spec": {"replicas": 1,
        "selector": {"matchLabels": {"app": "y"}}, "template": {"metadata": {"labels": {"app": "y"}},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]}}}})"));
  ASSERT_TRUE(owner) << owner.error();
  for (const char* name : {"a", "b"}) {
    create_pod(name, {{"metadata",
                       {{"ownerReferences", Json::array({{{"apiVersion", "apps/v1"},
                                                          {"kind", "Deployment"},
                                                          {"name", "d"},
                                                          {"uid", (*owner)["metadata"]["uid"]},
                                                          {"controller", true}}})}}}});
  }
  const auto spec = [](const std::string& amount) {
    return j((R"({"metadata": {"name": "b", "namespace": "ns"}, "spec": {"selector": {"matchLabels": {"app": "x"}}, )" +
              amount + "}}")
                 .c_str());
  };
  EXPECT_FALSE(api.create(res::kPodDisruptionBudget, spec(R"("maxUnavailable": 0, "minAvailable": 1)")));
  const auto allowed = [&](const std::string& amount) {
    (void)api.remove(res::kPodDisruptionBudget, {"ns", "b"});
    EXPECT_TRUE(api.create(res::kPodDisruptionBudget, spec(amount)));
    loop.run_for(30s);
    return core::get_int(*api.peek(res::kPodDisruptionBudget, {"ns", "b"}), {"status", "disruptionsAllowed"});
  };
  ASSERT_TRUE(loop.run_until([&] { return ready("a") && ready("b"); }, 60s));
  EXPECT_EQ(allowed(R"("maxUnavailable": 0)"), 1);  // two pods, whose owner wants one
  EXPECT_EQ(allowed(R"("minAvailable": "100%")"), 1);
  EXPECT_EQ(allowed(R"("minAvailable": 2)"), 0);
  EXPECT_EQ(allowed(R"("minAvailable": 2147483647)"), 0);
}

TEST_P(SimKubeTest, AtRestNothingIsWritten) {
  create_set(3);
  ASSERT_TRUE(loop.run_until([&] { return ready("s-2"); }, 60s));
  loop.run_for(60s);
  const std::uint64_t revision = api.store().revision();
  loop.run_for(600s);
  EXPECT_EQ(api.store().revision(), revision);
}

// --- Gates and placing ------------------------------------------------------------------------------------------------

struct GatedPodTest : SimKubeTest {
  static constexpr const char* kPin = R"({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]})";
  const kube::Key key{"ns", "p"};

  GatedPodTest() { create_pod("p", j(R"({"spec": {"schedulingGates": [{"name": "a.b/c"}]}})")); }
  ApiResult<Json> patch(const char* text) { return api.patch(res::kPod, key, PatchKind::kJson, j(text)); }
  ApiResult<Json> merge(const char* text) { return api.patch(res::kPod, key, PatchKind::kMerge, j(text)); }
  std::string node() { return core::get_string(*pod("p"), {"spec", "nodeName"}); }
  Json scheduled() {
    for (const Json& condition : (*pod("p"))["status"].value("conditions", Json::array())) {
      if (condition["type"] == "PodScheduled") return condition;
    }
    return nullptr;
  }
  static std::string field(const ApiResult<Json>& refused) {
    return refused ? "" : core::get_string(refused.error()["details"]["causes"][0], {"field"});
  }
};
INSTANTIATE_TEST_SUITE_P(Seeds, GatedPodTest, testing::Range<std::uint64_t>(1, 3));

TEST_P(GatedPodTest, AGatedPodIsNotScheduled) {
  EXPECT_EQ(scheduled()["reason"], "SchedulingGated") << "the API server says so at once";
  EXPECT_EQ(scheduled()["status"], "False");
  loop.run_for(60s);
  EXPECT_EQ(node(), "");
  EXPECT_EQ(scheduled()["reason"], "SchedulingGated");
}

TEST_P(GatedPodTest, OnePatchUngatesAndPins) {
  const std::string text =
      R"([{"op": "test", "path": "/metadata/resourceVersion", "value": ")" +
      core::get_string(*pod("p"), {"metadata", "resourceVersion"}) +
      R"("}, {"op": "remove", "path": "/spec/schedulingGates"}, {"op": "add", "path": "/spec/affinity", "value":
    {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [)" +
      std::string(kPin) + "]}}}}]";
  ASSERT_TRUE(patch(text.c_str()));
  EXPECT_FALSE(patch(text.c_str())) << "it has another version by now";
  loop.run_for(5s);
  EXPECT_EQ(node(), "n2");
  EXPECT_EQ(scheduled()["status"], "True");
}

TEST_P(GatedPodTest, GatesAreOnlyRemoved) {
  EXPECT_EQ(field(merge(R"({"spec": {"schedulingGates": [{"name": "a.b/c"}, {"name": "d"}]}})")),
            "spec.schedulingGates[1].name");
  ASSERT_TRUE(merge(R"({"spec": {"schedulingGates": []}})"));
  EXPECT_EQ(core::find(*pod("p"), {"spec", "schedulingGates"}), nullptr);
  EXPECT_EQ(field(merge(R"({"spec": {"schedulingGates": [{"name": "a.b/c"}]}})")), "spec.schedulingGates[0].name");
}

TEST_P(GatedPodTest, OnlyAGatedPodGetsMoreToLookFor) {
  ASSERT_TRUE(merge(R"({"spec": {"nodeSelector": {"kubernetes.io/hostname": "n3"}}})"));
  EXPECT_EQ(field(merge(R"({"spec": {"nodeSelector": {"kubernetes.io/hostname": "n1"}}})")), "spec.nodeSelector");
  EXPECT_EQ(field(merge(R"({"spec": {"nodeSelector": null}})")), "spec.nodeSelector");
  ASSERT_TRUE(merge(R"({"spec": {"schedulingGates": null}})"));
  EXPECT_EQ(field(merge(R"({"spec": {"nodeSelector": {"more": "x"}}})")), "spec");
  loop.run_for(5s);
  EXPECT_EQ(node(), "n3");
}

TEST_P(GatedPodTest, ATermOnlyGetsMoreRequirements) {
  const auto set = [&](const std::string& terms) {
    return merge(
        (R"({"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": )" +
         terms + "}}}}}")
            .c_str());
  };
  const std::string label = R"({"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1", "n2"]})";
  const std::string at = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
  EXPECT_EQ(field(set(R"([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1", "n2"]}]}])")),
            at + "[0].matchFields[0].values");
  ASSERT_TRUE(set("[{\"matchExpressions\": [" + label + "]}]"));
  EXPECT_EQ(field(set("[{\"matchExpressions\": [" + label + "]}, " + kPin + "]")), at) << "terms are alternatives";
  EXPECT_EQ(field(set("[" + std::string(kPin) + "]")), at + "[0]") << "the label is gone";
  const std::string both = "{\"matchExpressions\": [" + label + "]," + std::string(kPin).substr(1);
  ASSERT_TRUE(set("[" + both + "]"));
  ASSERT_TRUE(merge(R"({"spec": {"schedulingGates": null}})"));
  loop.run_for(5s);
  EXPECT_EQ(node(), "n2");
}

TEST_P(GatedPodTest, APodWithGatesHasNoNode) {
  Json pod = template_of(j(R"({"spec": {"nodeName": "n1", "schedulingGates": [{"name": "a.b/c"}]}})"));
  pod["metadata"] = {{"name", "q"}, {"namespace", "ns"}};
  EXPECT_EQ(field(api.create(res::kPod, pod)), "spec.nodeName");
}

TEST_P(SimKubeTest, APodWaitsForRoomOnItsNode) {
  kube.nodes().add_node("small", {{"size", "small"}}, {{"cpu", "2"}, {"memory", "1Gi"}, {"pods", "10"}});
  const auto make = [&](const char* name, const char* cpu) {
    Json extra = j(R"({"spec": {"nodeSelector": {"size": "small"}, "containers": [{"name": "c", "image": "i:1"}]}})");
    extra["spec"]["containers"][0]["resources"] = {{"requests", {{"cpu", cpu}, {"memory", "100Mi"}}}};
    create_pod(name, extra);
  };
  make("first", "1500m");
  loop.run_for(10s);
  make("second", "1");
  make("third", "500m");
  loop.run_for(10s);
  EXPECT_TRUE(ready("first") && ready("third"));
  EXPECT_FALSE(ready("second"));
  ASSERT_TRUE(api.remove(res::kPod, {"ns", "first"}));
  loop.run_for(60s);
  EXPECT_TRUE(ready("second"));
}

TEST_P(SimKubeTest, ARequirementOfATermIsEvaluated) {
  kube.nodes().add_node("gpu", {{"gpu", "4"}});
  const std::pair<const char*, bool> cases[] = {
      {R"({"key": "gpu", "operator": "Exists"})", true},
      {R"({"key": "gpu", "operator": "Gt", "values": ["3"]})", true},
      {R"({"key": "gpu", "operator": "Lt", "values": ["4"]})", false},
      {R"({"key": "gpu", "operator": "NotIn", "values": ["4"]})", false},
      {R"({"key": "gpu", "operator": "DoesNotExist"})", false},
  };
  int number = 0;
  for (const auto& [requirement, on_gpu] : cases) {
    Json extra = j(R"({"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": [{"matchExpressions": []}, {}]}}}}})");
    core::Json& terms =
        extra["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
    terms[0]["matchExpressions"].push_back(j(requirement));
    const std::string name = "r" + std::to_string(number++);
    create_pod(name, extra);
    loop.run_for(10s);
    EXPECT_EQ(core::get_string(*pod(name), {"spec", "nodeName"}) == "gpu", on_gpu) << requirement;
  }
}

TEST(SimKubeDeterminism, OneSeedIsOneHistory) {
  const auto history = [](std::uint64_t seed) {
    SimLoop loop(seed);
    SimKube kube(loop, loop.random().fork());
    kube.add_namespace("ns");
    for (const char* node : {"n1", "n2"}) kube.nodes().add_node(node);
    std::string out;
    kube.api().store().listen([&](const std::string& table, const ChangePtr& change) {
      out += table + " " + change->key.str() + " " + std::to_string(loop.clock().mono().since_start.count()) + "\n";
    });
    (void)kube.api().create(
        res::kStatefulSet,
        {{"metadata", {{"name", "s"}, {"namespace", "ns"}}},
         {"spec",
          {{"replicas", 3}, {"selector", {{"matchLabels", {{"app", "x"}}}}}, {"template", SimKubeTest::template_of()}}}});
    loop.run_for(60s);
    return out;
  };
  EXPECT_EQ(history(1), history(1));
  EXPECT_NE(history(1), history(2));
}

}  // namespace
}  // namespace sim
