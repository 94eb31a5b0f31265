#include "operator/nodeset/daemon_nodes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/well_known.hpp"

namespace op::nodeset {
namespace {

using core::Json;

kube::NodeRecord kube_node(std::string name, kube::StringMap labels = {}, std::vector<kube::Taint> taints = {}) {
  kube::NodeRecord node;
  node.meta.name = std::move(name);
  node.meta.labels = std::move(labels);
  node.taints = std::move(taints);
  return node;
}

Json affinity(const Json& terms) {
  return {
      {"affinity", {{"nodeAffinity", {{"requiredDuringSchedulingIgnoredDuringExecution", {{"nodeSelectorTerms", terms}}}}}}}};
}

/// Returns a node affinity with one requirement about a label.
Json label(const std::string& key, const std::string& op, std::vector<std::string> values = {}) {
  return affinity(Json::array({{{"matchExpressions", Json::array({{{"key", key}, {"operator", op}, {"values", values}}})}}}));
}

bool starts(const Json& pod, const kube::NodeRecord& node) {
  return NodeSelection(pod).judge(node).starts;
}

constexpr Fit kBoth{true, true}, kNone{false, false}, kStays{false, true};

TEST(NodeSelection, TakesEveryNodeWhereNothingIsAsked) {
  EXPECT_EQ(NodeSelection(Json::object()).judge(kube_node("a")), kBoth);
  EXPECT_EQ(NodeSelection(Json()).judge(kube_node("a")), kBoth);
}

TEST(NodeSelection, GoesByNodeSelector) {
  const Json pod{{"nodeSelector", {{"pool", "slurm"}, {"arch", "amd64"}}}};
  EXPECT_TRUE(starts(pod, kube_node("a", {{"pool", "slurm"}, {"arch", "amd64"}, {"more", ""}})));
  EXPECT_EQ(NodeSelection(pod).judge(kube_node("a", {{"pool", "slurm"}})), kNone);
  EXPECT_EQ(NodeSelection(pod).judge(kube_node("a", {{"pool", "slurm"}, {"arch", "arm64"}})), kNone);
}

TEST(NodeSelection, GoesByExpressions) {
  struct Case {
    const char* op;
    std::vector<std::string> values;
    bool with_5, with_none;
  };
  for (const Case& one :
       {Case{"In", {"4", "5"}, true, false}, Case{"In", {"4"}, false, false}, Case{"NotIn", {"4"}, true, true},
        Case{"NotIn", {"5"}, false, true}, Case{"Exists", {}, true, false}, Case{"DoesNotExist", {}, false, true},
        Case{"Gt", {"4"}, true, false}, Case{"Gt", {"5"}, false, false}, Case{"Lt", {"6"}, true, false},
        Case{"Lt", {"5"}, false, false}, Case{"Gt", {"x"}, false, false}, Case{"Gt", {"1", "2"}, false, false},
        Case{"Near", {"5"}, false, false}}) {
    const Json pod = label("n", one.op, one.values);
    EXPECT_EQ(starts(pod, kube_node("a", {{"n", "5"}})), one.with_5) << pod;
    EXPECT_EQ(starts(pod, kube_node("a")), one.with_none) << pod;
  }
  EXPECT_FALSE(starts(label("n", "Gt", {"4"}), kube_node("a", {{"n", "5x"}}))) << "no number";
}

TEST(NodeSelection, OfTermsOneIsEnoughAndOfRequirementsAllAre) {
  const Json a{{"key", "a"}, {"operator", "Exists"}}, b{{"key", "b"}, {"operator", "Exists"}};
  const Json either = affinity(Json::array({{{"matchExpressions", {a}}}, {{"matchExpressions", {b}}}}));
  const Json both = affinity(Json::array({{{"matchExpressions", {a, b}}}}));
  EXPECT_TRUE(starts(either, kube_node("x", {{"b", ""}})));
  EXPECT_FALSE(starts(both, kube_node("x", {{"b", ""}})));
  EXPECT_TRUE(starts(both, kube_node("x", {{"a", ""}, {"b", ""}})));
  EXPECT_FALSE(starts(affinity(Json::array({Json::object()})), kube_node("x"))) << "an empty term matches nothing";
  EXPECT_FALSE(starts(affinity(Json::array()), kube_node("x")));
}

TEST(NodeSelection, GoesByTheNameOfTheNode) {
  const auto named = [](const char* key, const char* op, const char* name) {
    return affinity(Json::array({{{"matchFields", Json::array({{{"key", key}, {"operator", op}, {"values", {name}}}})}}}));
  };
  EXPECT_TRUE(starts(named("metadata.name", "In", "a"), kube_node("a")));
  EXPECT_FALSE(starts(named("metadata.name", "In", "a"), kube_node("b")));
  EXPECT_TRUE(starts(named("metadata.name", "NotIn", "a"), kube_node("b")));
  EXPECT_FALSE(starts(named("metadata.uid", "NotIn", "a"), kube_node("b"))) << "there is no such field";
}

TEST(NodeSelection, GoesByTaints) {
  const NodeSelection plain((Json::object()));
  EXPECT_EQ(plain.judge(kube_node("a", {}, {{"gpu", "", "PreferNoSchedule"}})), kBoth);
  EXPECT_EQ(plain.judge(kube_node("a", {}, {{"gpu", "", "NoSchedule"}})), kStays);
  EXPECT_EQ(plain.judge(kube_node("a", {}, {{"gpu", "", "NoExecute"}})), kNone);
  EXPECT_EQ(plain.judge(kube_node("a", {}, {{"gpu", "", "NoSchedule"}, {"x", "", "NoExecute"}})), kNone);
  const auto tolerating = [](const Json& toleration, const kube::Taint& taint) {
    return NodeSelection(Json{{"tolerations", Json::array({toleration})}}).judge(kube_node("a", {}, {taint})).starts;
  };
  const kube::Taint gpu{"gpu", "yes", "NoSchedule"};
  EXPECT_TRUE(tolerating({{"key", "gpu"}, {"operator", "Exists"}}, gpu));
  EXPECT_TRUE(tolerating({{"operator", "Exists"}}, gpu)) << "everything";
  EXPECT_TRUE(tolerating({{"key", "gpu"}, {"value", "yes"}, {"effect", "NoSchedule"}}, gpu));
  EXPECT_FALSE(tolerating({{"key", "gpu"}, {"value", "no"}}, gpu));
  EXPECT_FALSE(tolerating({{"key", "gpu"}, {"operator", "Exists"}, {"effect", "NoExecute"}}, gpu));
  EXPECT_FALSE(tolerating({{"key", "other"}, {"operator", "Exists"}}, gpu));
  EXPECT_FALSE(tolerating({{"key", "gpu"}, {"operator", "Sometimes"}}, gpu));
}

TEST(NodeSelection, ToleratesWhatPodsOfADaemonSetDo) {
  const NodeSelection plain((Json::object())), on_host(Json{{"hostNetwork", true}});
  for (const char* key : {"unschedulable", "disk-pressure", "memory-pressure", "pid-pressure"}) {
    EXPECT_EQ(plain.judge(kube_node("a", {}, {{std::string("node.kubernetes.io/") + key, "", "NoSchedule"}})), kBoth) << key;
  }
  for (const char* key : {"not-ready", "unreachable"}) {
    const std::string taint = std::string("node.kubernetes.io/") + key;
    EXPECT_EQ(plain.judge(kube_node("a", {}, {{taint, "", "NoExecute"}})), kBoth) << key;
    EXPECT_EQ(plain.judge(kube_node("a", {}, {{taint, "", "NoSchedule"}, {taint, "", "NoExecute"}})), kStays)
        << "a worker outlasts the absence of its kubelet, and none is made meanwhile";
  }
  const kube::NodeRecord no_network = kube_node("a", {}, {{"node.kubernetes.io/network-unavailable", "", "NoSchedule"}});
  EXPECT_EQ(plain.judge(no_network), kStays);
  EXPECT_EQ(on_host.judge(no_network), kBoth);
  EXPECT_EQ(plain.judge(kube_node("a", {}, {{std::string(api::kTaintWorker), "", "NoExecute"}})), kBoth);
}

TEST(NodeSelection, ToleratesTheTaintOfSlurmBridgeWhereTheNodeIsNotExternal) {
  const NodeSelection plain((Json::object()));
  for (const char* effect : {"NoSchedule", "NoExecute"}) {
    const kube::Taint taint{"slinky.slurm.net/managed-node", "maintenance", effect};
    EXPECT_EQ(plain.judge(kube_node("a", {}, {taint})), kBoth) << effect;
    EXPECT_EQ(plain.judge(kube_node("a", {{"scheduler.slinky.slurm.net/external-node", "false"}}, {taint})), kBoth) << effect;
    EXPECT_FALSE(plain.judge(kube_node("a", {{"scheduler.slinky.slurm.net/external-node", "true"}}, {taint})).starts) << effect;
  }
}

TEST(DaemonNames, FollowTheKubernetesNode) {
  kube::NodeRecord node = kube_node("gpu-1.example.com");
  EXPECT_EQ(daemon_hostname(node), "gpu-1");
  node.meta.annotations[std::string(api::kAnnotationNodeHostnameOverride)] = "rack7";
  EXPECT_EQ(daemon_hostname(node), "rack7");
  EXPECT_EQ(daemon_hostname(kube_node("10.0.0.5")), "10-0-0-5");
  EXPECT_EQ(daemon_hostname(kube_node("10.example.com")), "10");
  EXPECT_EQ(daemon_hostname(kube_node("7")), "7");
  EXPECT_NE(daemon_pod_name("cpu", "a"), daemon_pod_name("cpu", "b"));
  EXPECT_THAT(daemon_pod_name("cpu", "a"), ::testing::MatchesRegex("cpu-[a-z0-9]{10}"));
  const std::string longest(61, 'n');
  EXPECT_EQ(daemon_pod_name(longest, "a").size(), 63U);
  EXPECT_NE(daemon_pod_name(longest, "a"), daemon_pod_name(longest.substr(1) + "m", "a")) << "what is cut off counts, too";
}

TEST(DaemonNames, ThePlaceOfAPodIsToldByItsModeAndItsPin) {
  kube::PodRecord pod;
  pod.meta.name = "cpu-7";
  EXPECT_EQ(place_of(pod, "cpu"), SlotKey{7});
  pod.pinned_to = "kube-1";
  EXPECT_EQ(place_of(pod, "cpu"), SlotKey{7}) << "pinned to where it was before";
  pod.meta.labels[std::string(api::kLabelScalingMode)] = "DaemonSet";
  EXPECT_EQ(place_of(pod, "cpu"), (SlotKey{-1, "kube-1"})) << "a generated name may have digits only";
  pod.pinned_to.clear();
  EXPECT_EQ(place_of(pod, "cpu"), std::nullopt);
  pod.node_name = "kube-2";
  EXPECT_EQ(place_of(pod, "cpu"), (SlotKey{-1, "kube-2"}));
  pod.meta.labels.clear();
  pod.meta.name = "cpu-x7k2p";
  EXPECT_EQ(place_of(pod, "cpu"), std::nullopt);
}

TEST(DaemonNames, OfTwoHostsWithOneNameTheFirstHasTheWorker) {
  Hosts hosts{{"a.x", {kBoth, "a", core::WallTime{core::Duration{2}}}},
              {"a.y", {kBoth, "a", core::WallTime{core::Duration{1}}}}};
  settle_hosts(hosts, {}, "cpu", false);
  EXPECT_FALSE(hosts["a.x"].wanted);
  EXPECT_EQ(hosts["a.x"].twin, "a.y");
  EXPECT_TRUE(hosts["a.y"].wanted) << "it is older";
  auto pod = std::make_shared<kube::PodRecord>();
  pod->pinned_to = "a.x";
  pod->hostname = "b";
  pod->meta.labels[std::string(api::kLabelScalingMode)] = "DaemonSet";
  hosts["a.x"].twin.clear();
  settle_hosts(hosts, {pod}, "cpu", false);
  EXPECT_EQ(hosts["a.x"].twin, "a.y") << "its worker has another name";
  pod->hostname = "a";
  hosts["a.x"].twin.clear();
  settle_hosts(hosts, {pod}, "cpu", false);
  EXPECT_TRUE(hosts["a.x"].wanted) << "its worker has the name";
  EXPECT_FALSE(hosts["a.y"].wanted);
  EXPECT_EQ(hosts["a.y"].twin, "a.x");
}

}  // namespace
}  // namespace op::nodeset
