#include "operator/common/pod_template.hpp"

#include <gtest/gtest.h>

#include <ctime>

namespace op {
namespace {

using core::Json;

TEST(MergeContainer, TheUserWinsAndOurNameStays) {
  const Json base{{"name", "slurmctld"}, {"image", "ours"}, {"args", {"-a"}}, {"env", {{{"name", "A"}, {"value", "1"}}}}};
  const Json over{{"name", "other"}, {"image", "theirs"}, {"args", {"-b"}}, {"env", {{{"name", "B"}, {"value", "2"}}}}};
  const Json merged = merge_container(base, over);
  EXPECT_EQ(merged["name"], "slurmctld");
  EXPECT_EQ(merged["image"], "theirs");
  EXPECT_EQ(merged["args"], Json({"-a", "-b"}));
  EXPECT_EQ(merged["env"].size(), 2U);
  EXPECT_EQ(merge_container(base, Json::object()), base);
  EXPECT_EQ(merge_container(base, nullptr), base);
}

TEST(MergeContainer, AProbesHandlerReplacesOurs) {
  const Json base{{"name", "c"}, {"readinessProbe", {{"periodSeconds", 1}, {"httpGet", {{"path", "/"}, {"port", 1}}}}}};
  const Json exec{{"readinessProbe", {{"exec", {{"command", {"true"}}}}}}};
  EXPECT_EQ(merge_container(base, exec)["readinessProbe"], (Json{{"periodSeconds", 1}, {"exec", {{"command", {"true"}}}}}));
  const Json period{{"readinessProbe", {{"periodSeconds", 9}}}};
  EXPECT_EQ(merge_container(base, period)["readinessProbe"],
            (Json{{"periodSeconds", 9}, {"httpGet", {{"path", "/"}, {"port", 1}}}}));
}

TEST(MergeContainer, AVariablesSourceReplacesItsValue) {
  const Json base{{"name", "c"}, {"env", {{{"name", "A"}, {"value", "1"}}}}};
  const Json over{{"env", {{{"name", "A"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "metadata.name"}}}}}}}}};
  EXPECT_EQ(merge_container(base, over)["env"], over["env"]);
}

TEST(MergeContainer, NullAndEmptyListsChangeNothing) {
  const Json base{{"name", "c"},
                  {"command", {"sh"}},
                  {"args", {"-a"}},
                  {"env", {{{"name", "A"}, {"value", "1"}}}},
                  {"ports", {{{"name", "p"}, {"containerPort", 1}}}},
                  {"volumeMounts", {{{"name", "etc"}, {"mountPath", "/etc/slurm"}}}},
                  {"securityContext", {{"runAsUser", 401}, {"capabilities", {{"add", {"BPF"}}}}}},
                  {"livenessProbe", {{"tcpSocket", {{"port", 1}}}}}};
  for (const Json& nothing : {Json(nullptr), Json::array()}) {
    Json over{{"securityContext", {{"capabilities", {{"add", nothing}}}}}, {"env", {{{"name", "A"}, {"valueFrom", nothing}}}}};
    EXPECT_EQ(merge_container(base, over), base) << over;
    for (const char* field : {"command", "args", "env", "envFrom", "ports", "volumeMounts", "volumeDevices", "livenessProbe"}) {
      over[field] = nothing;
    }
    EXPECT_EQ(merge_container(base, over), base) << over;
  }
}

TEST(MergePodTemplate, NullAndEmptyListsChangeNothing) {
  const Json base{{"initContainers", {{{"name", "wait"}}}},
                  {"containers", {{{"name", "slurmd"}, {"env", {{{"name", "A"}, {"value", "1"}}}}}}},
                  {"volumes", {{{"name", "etc"}, {"projected", {{"sources", {"key"}}}}}}},
                  {"tolerations", {{{"operator", "Exists"}}}},
                  {"dnsConfig", {{"searches", {"a"}}}}};
  for (const Json& nothing : {Json(nullptr), Json::array()}) {
    api::PodTemplate over;
    for (const char* list : {"initContainers", "containers", "volumes", "tolerations", "imagePullSecrets"}) {
      over.spec[list] = nothing;
    }
    over.spec["dnsConfig"]["searches"] = nothing;
    EXPECT_EQ(merge_pod_template(base, over, {}, {}, {})["spec"], base) << over.spec;
    over.spec["containers"] = Json::array({{{"name", "slurmd"}, {"env", nothing}}});
    over.spec["volumes"] = Json::array({{{"name", "etc"}, {"projected", {{"sources", nothing}}}}});
    EXPECT_EQ(merge_pod_template(base, over, {}, {}, {})["spec"], base) << over.spec;
  }
}

TEST(MergePodTemplate, ContainersByNameAndVolumesWhole) {
  const Json base{
      {"containers", {{{"name", "slurmctld"}, {"image", "ours"}}}},
      {"volumes", {{{"name", "run"}, {"emptyDir", {{"medium", "Memory"}}}}, {{"name", "etc"}, {"projected", Json::object()}}}}};
  api::PodTemplate over;
  over.spec = {
      {"containers", {{{"name", "slurmctld"}, {"args", {"-v"}}}, {{"name", "side"}, {"image", "x"}}}},
      {"volumes", {{{"name", "run"}, {"hostPath", {{"path", "/run"}}}}, {{"name", "mine"}, {"emptyDir", Json::object()}}}},
      {"hostNetwork", true}};
  over.metadata.labels = {{"a", "b"}, {"app.kubernetes.io/name", "hijack"}};
  const Json merged = merge_pod_template(base, over, {}, {{"app.kubernetes.io/name", "slurmctld"}}, {{"x", "y"}});
  const Json& spec = merged["spec"];
  ASSERT_EQ(spec["containers"].size(), 2U);
  EXPECT_EQ(spec["containers"][0], (Json{{"name", "slurmctld"}, {"image", "ours"}, {"args", {"-v"}}}));
  EXPECT_EQ(spec["volumes"][0], (Json{{"name", "run"}, {"hostPath", {{"path", "/run"}}}}));
  EXPECT_EQ(spec["volumes"].size(), 3U);
  EXPECT_EQ(spec["hostNetwork"], true);
  EXPECT_EQ(merged["metadata"]["labels"], (Json{{"a", "b"}, {"app.kubernetes.io/name", "slurmctld"}}));
  EXPECT_EQ(merged["metadata"]["annotations"], (Json{{"x", "y"}}));
}

TEST(MergePodTemplate, OwnersMetadataIsBelowTheTemplates) {
  kube::ObjectMeta owner;
  owner.labels = {{"team", "a"}, {"tier", "low"}, {"app.kubernetes.io/name", "hijack"}};
  owner.annotations = {{"note", "x"}, {"cost", "1"}, {"kubectl.kubernetes.io/last-applied-configuration", "{}"}};
  api::PodTemplate over;
  over.metadata.labels = {{"tier", "high"}};
  over.metadata.annotations = {{"cost", "2"}, {"kubectl.kubernetes.io/restartedAt", "now"}};
  const Json merged = merge_pod_template(Json::object(), over, owner, {{"app.kubernetes.io/name", "slurmctld"}}, {});
  EXPECT_EQ(merged["metadata"]["labels"], (Json{{"team", "a"}, {"tier", "high"}, {"app.kubernetes.io/name", "slurmctld"}}));
  EXPECT_EQ(merged["metadata"]["annotations"],
            (Json{{"note", "x"}, {"cost", "2"}, {"kubectl.kubernetes.io/restartedAt", "now"}}));
}

TEST(PodTemplate, ManyContainersAreMergedInOneGo) {
  api::PodTemplate over;
  over.spec = {{"containers", core::Json::array()}};
  for (int i = 0; i < 30'000; ++i) over.spec["containers"].push_back({{"name", "c" + std::to_string(i)}});
  // Measures the CPU time of this process, which does not depend on how busy the machine is.
  const std::clock_t began = std::clock();
  const core::Json pod = merge_pod_template({{"containers", {{{"name", "c7"}, {"image", "x"}}}}}, over, {}, {}, {});
  EXPECT_EQ(pod["spec"]["containers"].size(), 30'000U);
  EXPECT_EQ(pod["spec"]["containers"][0]["image"], "x");
  EXPECT_LT((std::clock() - began) / CLOCKS_PER_SEC, 20);
}

}  // namespace
}  // namespace op
