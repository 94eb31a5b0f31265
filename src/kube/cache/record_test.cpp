#include "kube/cache/record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include "core/base64.hpp"
#include "kube/testing/fake_transport.hpp"

namespace kube {
namespace {

using core::Json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// A worker's pod as an API server sends it.
Json full_pod() {
  Json pod = object_json(
      "ns", "cpu-0", "42", "pod-uid",
      {{"metadata",
        {{"generation", 2},
         {"creationTimestamp", "2026-01-02T03:04:05Z"},
         {"labels", {{"app", "slurmd"}}},
         {"annotations", {{"a", "b"}, {"kubectl.kubernetes.io/last-applied-configuration", std::string(4000, 'x')}}},
         {"finalizers", {"x/y"}},
         {"ownerReferences",
          {{{"apiVersion", "slinky.slurm.net/v1beta1"},
            {"kind", "NodeSet"},
            {"name", "cpu"},
            {"uid", "set"},
            {"controller", true}}}},
         {"managedFields", {{{"manager", "m"}, {"fieldsV1", {{"f:spec", std::string(3000, 'y')}}}}}}}},
       {"spec",
        {{"nodeName", "node-1"},
         {"hostname", "cpu-0"},
         {"hostNetwork", true},
         {"containers",
          {{{"name", "slurmd"}, {"image", std::string(2000, 'z')}, {"livenessProbe", {{"httpGet", {{"port", 1}}}}}},
           {{"name", "side"},
            {"startupProbe", {{"tcpSocket", {{"port", 1}}}}},
            {"readinessProbe", {{"httpGet", nullptr}}}}}}}}});
  pod["status"] = Json::parse(R"({
    "phase": "Running", "podIP": "10.0.0.7", "reason": "", "message": "fine",
    "conditions": [{"type": "Ready", "status": "True", "reason": "r", "message": "m", "lastTransitionTime": "2026-01-02T03:05:00Z"},
                   {"type": "PodScheduled", "status": "True"}],
    "initContainerStatuses": [{"name": "init", "ready": true, "restartCount": 0, "state": {"terminated": {"exitCode": 0}}}],
    "containerStatuses": [
      {"name": "slurmd", "ready": true, "restartCount": 0, "state": {"running": {"startedAt": "2026-01-02T03:05:00Z"}}},
      {"name": "side", "ready": false, "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
       "lastState": {"terminated": {"exitCode": 1, "message": "fatal: no"}}},
      {"name": "ended", "ready": false, "restartCount": 1, "state": {"terminated": {"exitCode": 1, "message": "fatal: again"}}},
      {"name": "once", "ready": false, "restartCount": 0, "state": {"terminated": {"exitCode": 1}}},
      {"name": "done", "ready": false, "restartCount": 1, "state": {"terminated": {"exitCode": 0}}},
      {"name": "new", "ready": false, "restartCount": 0, "state": {"waiting": {"reason": "ContainerCreating"}}},
      {"name": "again", "ready": false, "restartCount": 0, "state": {"waiting": {"reason": "X"}}, "lastState": {"terminated": {"exitCode": 1}}}]})");
  return pod;
}

TEST(RecordTest, APodIsReadInto) {
  const auto parsed = record_from_json<PodRecord>(full_pod());
  ASSERT_TRUE(parsed) << parsed.error().message;
  const PodRecord& pod = **parsed;
  EXPECT_EQ(pod.meta.key(), (Key{"ns", "cpu-0"}));
  EXPECT_EQ(pod.meta.uid, "pod-uid");
  EXPECT_EQ(pod.meta.resource_version, "42");
  EXPECT_EQ(pod.meta.generation, 2);
  EXPECT_EQ(core::format_rfc3339(pod.meta.created), "2026-01-02T03:04:05Z");
  EXPECT_FALSE(pod.meta.terminating());
  EXPECT_EQ(pod.meta.label("app"), "slurmd");
  EXPECT_EQ(pod.meta.annotation("a"), "b");
  EXPECT_EQ(pod.meta.annotations.size(), 1U) << "the copy that kubectl keeps is not";
  EXPECT_THAT(pod.meta.finalizers, ElementsAre("x/y"));
  ASSERT_NE(pod.meta.controller_owner(), nullptr);
  EXPECT_EQ(*pod.meta.controller_owner(), (OwnerReference{"slinky.slurm.net/v1beta1", "NodeSet", "cpu", "set", true}));
  EXPECT_EQ(pod.node_name, "node-1");
  EXPECT_EQ(pod.hostname, "cpu-0");
  EXPECT_TRUE(pod.host_network);
  EXPECT_THAT(pod.http_probed, ElementsAre("slurmd"));
  EXPECT_EQ(pod.phase, "Running");
  EXPECT_EQ(pod.pod_ip, "10.0.0.7");
  EXPECT_EQ(pod.message, "fine");
  EXPECT_TRUE(pod.ready());
  ASSERT_TRUE(pod.ready_since);
  EXPECT_EQ(core::format_rfc3339(*pod.ready_since), "2026-01-02T03:05:00Z");
  ASSERT_EQ(pod.containers.size(), 8U);
  EXPECT_TRUE(pod.containers[0].init);
  std::vector<bool> started;
  for (const ContainerState& c : pod.containers) started.push_back(c.started_once);
  EXPECT_THAT(started, ElementsAre(true, true, true, true, true, true, false, true));
  std::vector<std::string> crashed;
  for (const ContainerState& c : pod.containers) {
    if (c.crashed) crashed.push_back(c.name + " " + c.message);
  }
  EXPECT_THAT(crashed, ElementsAre("side fatal: no", "ended fatal: again"));
  EXPECT_EQ(pod.containers[2].waiting_reason, "CrashLoopBackOff");
  EXPECT_EQ(pod.containers[2].restarts, 3);
}

TEST(RecordTest, APodWithoutStatusIsAPod) {
  const auto parsed = record_from_json<PodRecord>(object_json("ns", "p", "1"));
  ASSERT_TRUE(parsed);
  EXPECT_FALSE((*parsed)->ready());
  EXPECT_EQ((*parsed)->ready_since, std::nullopt);
}

TEST(RecordTest, APodSaysHowLongItStaysOnALostNode) {
  Json json = object_json("ns", "p", "1");
  json["spec"]["tolerations"] = Json::parse(R"([
      {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoSchedule"},
      {"key": "node.kubernetes.io/not-ready", "operator": "Equal", "value": "x", "effect": "NoExecute"},
      {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
      {"key": "node.kubernetes.io/not-ready", "operator": "Exists"}])");
  const auto pod = *record_from_json<PodRecord>(json);
  EXPECT_EQ(pod->not_ready, (Patience{2, 300}));
  EXPECT_EQ(pod->unreachable, Patience{});
  json["spec"]["tolerations"] = Json::parse(R"([{"operator": "Exists", "tolerationSeconds": 5},
      {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "tolerationSeconds": 300}])");
  EXPECT_EQ((*record_from_json<PodRecord>(json))->unreachable, (Patience{0, {}})) << "of all taints: a user's own";
}

TEST(RecordTest, ANodeIsReadyWhenItsKubeletSaysSo) {
  Json json = object_json("", "n", "1");
  EXPECT_FALSE((*record_from_json<NodeRecord>(json))->ready);
  for (const char* status : {"True", "False", "Unknown"}) {
    json["status"]["conditions"] =
        Json::array({{{"type", "DiskPressure"}, {"status", "True"}}, {{"type", "Ready"}, {"status", status}}});
    EXPECT_EQ((*record_from_json<NodeRecord>(json))->ready, std::string_view(status) == "True");
  }
}

TEST(RecordTest, OfANodeHasItsTaints) {
  const Json json{{"metadata", {{"name", "n"}}},
                  {"spec", {{"taints", Json::array({{{"key", "a"}, {"value", "b"}, {"effect", "NoSchedule"}}})}}}};
  EXPECT_EQ((*record_from_json<NodeRecord>(json))->taints, (std::vector<Taint>{{"a", "b", "NoSchedule"}}));
}

TEST(RecordTest, OfAPodNamesTheNodeThatItIsBoundTo) {
  const auto pinned_to = [](const Json& terms) {
    const Json json{
        {"metadata", {{"name", "p"}}},
        {"spec",
         {{"affinity",
           {{"nodeAffinity", {{"requiredDuringSchedulingIgnoredDuringExecution", {{"nodeSelectorTerms", terms}}}}}}}}}};
    return (*record_from_json<PodRecord>(json))->pinned_to;
  };
  const auto named = [](std::vector<std::string> names) {
    return Json{{"matchFields", Json::array({{{"key", "metadata.name"}, {"operator", "In"}, {"values", names}}})}};
  };
  const Json labels{{"matchExpressions", Json::array({{{"key", "a"}, {"operator", "Exists"}}})}};
  EXPECT_EQ(pinned_to(Json::array({named({"a"})})), "a");
  EXPECT_EQ(pinned_to(Json::array({named({"a"}), named({"a"})})), "a");
  EXPECT_EQ(pinned_to(Json::array({named({"a"}), named({"b"})})), "");
  EXPECT_EQ(pinned_to(Json::array({named({"a"}), labels})), "") << "another term lets it go elsewhere";
  EXPECT_EQ(pinned_to(Json::array({named({"a", "b"})})), "");
  EXPECT_EQ(pinned_to(Json::array()), "");
}

TEST(RecordTest, AnObjectIsKeptWholeButForWhatNobodyReads) {
  const auto parsed = record_from_json<Object>(full_pod());
  ASSERT_TRUE(parsed);
  Json expected = full_pod();
  expected["metadata"].erase("managedFields");
  expected["metadata"]["annotations"].erase("kubectl.kubernetes.io/last-applied-configuration");
  EXPECT_EQ((*parsed)->body, expected);
}

TEST(RecordTest, NumbersKeepTheirKind) {
  Json object = object_json("ns", "o", "1");
  object["spec"] = {{"int", -5}, {"big", 18446744073709551615ULL}, {"float", 1.5}, {"yes", true}, {"nothing", nullptr}};
  EXPECT_EQ((*record_from_json<Object>(object))->body["spec"], object["spec"]);
}

TEST(RecordTest, APodSaysWhichSecretsItMounts) {
  Json pod = object_json("ns", "p", "1");
  pod["spec"]["volumes"] = Json::parse(R"([
      {"name": "a", "secret": {"secretName": "own"}},
      {"name": "b", "projected": {"sources": [{"configMap": {"name": "map"}}, {"secret": {"name": "projected"}}]}},
      {"name": "c", "emptyDir": {}}])");
  const auto record = *record_from_json<PodRecord>(pod);
  EXPECT_EQ(record->secrets, (std::vector<std::string>{"own", "projected"}));
  EXPECT_TRUE(record->mounts_secret("projected"));
  EXPECT_FALSE(record->mounts_secret("map"));
}

TEST(RecordTest, ASecretIsKeptWithoutItsBytes) {
  Json json = object_json("ns", "s", "1");
  json["type"] = "Opaque";
  json["immutable"] = true;
  json["data"] = {
      {"a", core::base64_encode("hunter2")}, {"b", core::base64_encode("hunter2")}, {"c", core::base64_encode("other")}};
  const auto one = *record_from_json<SecretRecord>(json, {"salt"});
  EXPECT_EQ(one->type, "Opaque");
  EXPECT_TRUE(one->immutable);
  EXPECT_EQ(one->sizes.at("a"), "7");
  EXPECT_EQ(one->value_hashes.at("a"), one->value_hashes.at("b"));
  EXPECT_NE(one->value_hashes.at("a"), one->value_hashes.at("c"));
  EXPECT_EQ(one->value_hashes.at("a").size(), 64U);
  Json twin = json;
  twin["metadata"]["uid"] = "another";
  const auto same = *record_from_json<SecretRecord>(twin, {"salt"});
  EXPECT_NE(one->value_hashes.at("a"), same->value_hashes.at("a")) << "what is written tells nothing about other Secrets";
  EXPECT_EQ(one->contents.at("a"), same->contents.at("a"));
  EXPECT_NE(one->contents.at("a"), same->contents.at("c"));
  EXPECT_NE(one->contents.at("a"), one->value_hashes.at("a"));
  const auto other = *record_from_json<SecretRecord>(json, {"another salt"});
  EXPECT_NE(one->contents.at("a"), other->contents.at("a"));
  EXPECT_NE(one->value_hashes.at("a"), other->value_hashes.at("a"));
}

TEST(RecordTest, WhatIsNoObjectIsRefused) {
  EXPECT_FALSE(parse_record_text<PodRecord>("[]"));
  EXPECT_FALSE(parse_record_text<PodRecord>("{}"));
  EXPECT_FALSE(parse_record_text<Object>(R"({"metadata":{}})"));
  EXPECT_FALSE(parse_record_text<Object>(R"({"metadata":)"));
  Json bad = object_json("ns", "s", "1");
  bad["data"]["x"] = "***";
  EXPECT_FALSE(record_from_json<SecretRecord>(bad));
}

TEST(DocumentParserTest, ParsesOneAfterAnother) {
  DocumentParser parser;
  const std::string large = "{\"x\":\"" + std::string(1U << 20U, 'y') + "\"}";
  int used = 0;
  for (const std::string& text : {std::string("{}"), large, std::string("[1]")}) {
    EXPECT_TRUE(parser.parse(text, [&](const auto&) -> core::Result<void> {
      ++used;
      return {};
    }));
  }
  EXPECT_EQ(used, 3);
  EXPECT_FALSE(parser.parse("{", [&](const auto&) -> core::Result<void> { return {}; }));
  EXPECT_FALSE(
      parser.parse("{}", [&](const auto&) -> core::Result<void> { return core::fail(core::ErrorCode::kInvalid, "x"); }));
}

TEST(RecordTest, AMetadataRecordIsTheMetadataOfAnyKind) {
  const auto record = record_from_json<MetadataRecord>(full_pod());
  ASSERT_TRUE(record);
  EXPECT_EQ((*record)->meta.key(), (Key{"ns", "cpu-0"}));
  EXPECT_EQ((*record)->meta.label("app"), "slurmd");
  EXPECT_FALSE(record_from_json<MetadataRecord>(Json::object()));
}

TEST(RecordTest, ASchedulerSeesWhatAPodWants) {
  Json pod = full_pod();
  pod["spec"].update(Json::parse(R"({
    "schedulingGates": [{"name": "a.b/c"}, {"name": "d"}], "schedulerName": "slurm", "priorityClassName": "high", "priority": 100, "terminationGracePeriodSeconds": 45,
    "nodeSelector": {"disk": "ssd"}, "affinity": {"nodeAffinity": {"x": [1]}},
    "tolerations": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute", "tolerationSeconds": 30},
                    {"operator": "Exists"}]})"));
  const auto parsed = record_from_json<SchedulingPodRecord>(pod);
  ASSERT_TRUE(parsed);
  const SchedulingPodRecord& record = **parsed;
  EXPECT_EQ(record.node_name, "node-1") << "all of PodRecord";
  EXPECT_TRUE(record.ready());
  EXPECT_THAT(record.gates, ElementsAre("a.b/c", "d"));
  EXPECT_EQ(record.scheduler, "slurm");
  EXPECT_EQ(record.priority_class, "high");
  EXPECT_EQ(record.priority, 100);
  EXPECT_EQ(record.grace, core::Duration{45000});
  EXPECT_EQ(record.node_selector, (StringMap{{"disk", "ssd"}}));
  EXPECT_EQ(record.affinity, Json::parse(R"({"nodeAffinity": {"x": [1]}})"));
  EXPECT_THAT(record.tolerations,
              ElementsAre(Toleration{"k", "Equal", "v", "NoExecute", 30}, Toleration{"", "Exists", "", "", std::nullopt}));
  EXPECT_TRUE(record.requests.empty());
  EXPECT_TRUE((*record_from_json<SchedulingPodRecord>(full_pod()))->affinity.is_null());
  EXPECT_FALSE(record_from_json<SchedulingPodRecord>(Json::object()));
}

TEST(RecordTest, ASchedulerSeesHowAPodEndedAndWhetherItHasAnnotations) {
  const auto read = [](const char* status, Json annotations = nullptr) {
    Json pod = object_json("ns", "p", "1", "", {{"spec", Json::object()}, {"status", Json::parse(status)}});
    if (!annotations.is_null()) pod["metadata"]["annotations"] = std::move(annotations);
    return record_from_json<SchedulingPodRecord>(pod).value();
  };
  EXPECT_EQ(read(R"({"containerStatuses": [{"name": "a", "state": {"running": {}}}]})")->exit_code, std::nullopt);
  EXPECT_EQ(read(R"({"containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 0}}}]})")->exit_code, 0);
  EXPECT_EQ(read(R"({"initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 9}}}],
                     "containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 3}}}]})")
                ->exit_code,
            9);
  EXPECT_FALSE(read("{}")->annotated);
  const auto applied = read("{}", {{"kubectl.kubernetes.io/last-applied-configuration", "{}"}});
  EXPECT_TRUE(applied->annotated);
  EXPECT_TRUE(applied->meta.annotations.empty());
}

ResourceAmounts requests(const char* spec) {
  return (*record_from_json<SchedulingPodRecord>(object_json("ns", "p", "1", "", {{"spec", Json::parse(spec)}})))->requests;
}

TEST(RecordTest, RequestsAreWhatTheSchedulerCounts) {
  EXPECT_EQ(requests(R"({"containers": [{"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}},
                                        {"resources": {"requests": {"cpu": 1, "nvidia.com/gpu": "2"}, "limits": {"x/y": "9"}}}, {}]})"),
            (ResourceAmounts{{"cpu", 1.5L}, {"memory", 1073741824.0L}, {"nvidia.com/gpu", 2.0L}}));
  // The first init container runs alone, the second beside the sidecar.
  EXPECT_EQ(requests(R"({"containers": [{"resources": {"requests": {"cpu": "1"}}}],
      "initContainers": [{"resources": {"requests": {"cpu": "3"}}},
                         {"restartPolicy": "Always", "resources": {"requests": {"cpu": "2", "memory": "8"}}},
                         {"resources": {"requests": {"cpu": "2"}}}]})"),
            (ResourceAmounts{{"cpu", 4.0L}, {"memory", 8.0L}}));
  EXPECT_EQ(requests(R"({"containers": [{"resources": {"requests": {"cpu": "3"}}}],
      "initContainers": [{"restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}}]})"),
            (ResourceAmounts{{"cpu", 5.0L}}));
  // Requests of the pod as a whole replace the sum of its containers; the runtime's overhead is added.
  EXPECT_EQ(requests(R"({"containers": [{"resources": {"requests": {"cpu": "1", "x/y": "1"}}}],
      "resources": {"requests": {"cpu": "2"}}, "overhead": {"cpu": "250m"}})"),
            (ResourceAmounts{{"cpu", 2.25L}, {"x/y", 1.0L}}));
}

TEST(RecordTest, ASchedulerSeesWhatANodeHas) {
  const Json node = Json::parse(R"({"metadata": {"name": "n"},
    "spec": {"unschedulable": true, "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}, {"key": "e", "effect": "NoExecute"}]},
    "status": {"capacity": {"cpu": "99"}, "allocatable": {"cpu": "7500m", "pods": "110"},
               "conditions": [{"type": "Ready", "status": "True", "reason": "r", "message": "m"}]}})");
  const auto parsed = record_from_json<SchedulingNodeRecord>(node);
  ASSERT_TRUE(parsed);
  EXPECT_TRUE((*parsed)->ready);
  EXPECT_TRUE((*parsed)->unschedulable);
  EXPECT_THAT((*parsed)->taints, ElementsAre(Taint{"k", "v", "NoSchedule"}, Taint{"e", "", "NoExecute"}));
  EXPECT_EQ((*parsed)->allocatable, (ResourceAmounts{{"cpu", 7.5L}, {"pods", 110.0L}}));
  EXPECT_THAT((*parsed)->conditions, ElementsAre(PodCondition{"Ready", "True", "r", "m"}));
}

TEST(RecordTest, KeepsOfANodesConditionsWhatIsTheMatter) {
  const Json node = Json::parse(R"({"metadata": {"name": "n"}, "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "CPUProblem", "status": "True", "reason": "r", "message": "m"},
                              {"type": "GPUProblem", "status": "False", "reason": "r", "message": "m"}]}})");
  const auto parsed = record_from_json<NodeRecord>(node);
  ASSERT_TRUE(parsed);
  EXPECT_THAT((*parsed)->taints, ElementsAre(Taint{"k", "", "NoSchedule"}));
  EXPECT_THAT((*parsed)->troubles, ElementsAre(PodCondition{"CPUProblem", "True", "r", "m"}));
}

}  // namespace
}  // namespace kube
