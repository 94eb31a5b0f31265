#include "bridge/common/fits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bridge/common/held.hpp"

namespace bridge {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

PodPtr pod_with(kube::ResourceAmounts requests, kube::StringMap node_selector = {}) {
  Pod out;
  out.requests = std::move(requests);
  out.node_selector = std::move(node_selector);
  return std::make_shared<const Pod>(std::move(out));
}

struct FitsTest : ::testing::Test {
  FitsTest() {
    for (const char* name : {"a", "b"}) {
      host(name);
      slurm_node(name);
    }
  }

  /// Creates or replaces a Kubernetes node.
  void host(const std::string& name, kube::StringMap labels = {}) {
    auto node = std::make_shared<kube::SchedulingNodeRecord>();
    node->meta.name = name;
    node->meta.labels = std::move(labels);
    node->allocatable = {{"cpu", 8}};
    auto changed = std::make_shared<Hosts>(*hosts);
    (*changed)[name] = std::move(node);
    hosts = std::move(changed);
  }
  slurm::Node& slurm_node(const std::string& name) {
    auto node = std::make_shared<slurm::Node>();
    node->name = name;
    node->partitions = {"batch"};
    slurm::Node& out = *node;
    now.nodes.insert_or_assign(name, std::move(node));
    return out;
  }
  FitPtr of(const PodPtr& like, const std::string& partitions = "batch") {
    fits.follow(hosts, std::make_shared<const slurm::Snapshot>(now), "cluster-a");
    return fits.of(like, partitions);
  }

  std::shared_ptr<const Hosts> hosts = std::make_shared<const Hosts>();
  slurm::Snapshot now;
  Fits fits;
  const PodPtr pod = pod_with({{"cpu", 1}});
};

TEST_F(FitsTest, PodsOfOneTemplateShareOne) {
  const FitPtr fit = of(pod);
  EXPECT_EQ(fit->fitting, 2U);
  EXPECT_EQ(of(pod_with({{"cpu", 1}})), fit);
  EXPECT_TRUE(fit->is_of({pod, pod_with({{"cpu", 1}})}, "batch"));
}

TEST_F(FitsTest, OtherPodsAndPartitionsHaveTheirOwn) {
  const FitPtr fit = of(pod);
  EXPECT_THAT(of(pod_with({{"cpu", 9}}))->excluded, ElementsAre("a", "b"));
  EXPECT_THAT(of(pod_with({{"cpu", 1}}, {{"zone", "x"}}))->excluded, ElementsAre("a", "b"));
  EXPECT_EQ(of(pod, "other")->fitting, 0U);
  Pod tolerant = *pod;
  tolerant.tolerations.push_back({.key = "gpu", .op = "Exists", .value = "", .effect = "", .seconds = {}});
  EXPECT_NE(of(std::make_shared<const Pod>(tolerant)), fit);
  Pod pinned = *pod;
  pinned.affinity = core::Json::parse(R"({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
    {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}]}}})");
  EXPECT_THAT(of(std::make_shared<const Pod>(pinned))->excluded, ElementsAre("b"));
  EXPECT_EQ(of(pod), fit) << "it is kept meanwhile";
  EXPECT_FALSE(fit->is_of({pod}, "other"));
  EXPECT_FALSE(fit->is_of({pod, std::make_shared<const Pod>(pinned)}, "batch"));
}

TEST_F(FitsTest, AChangeOfAKubernetesNodeIsSeen) {
  const PodPtr selects = pod_with({{"cpu", 1}}, {{"zone", "x"}});
  EXPECT_THAT(of(selects)->excluded, ElementsAre("a", "b"));
  host("a", {{"zone", "x"}});
  EXPECT_THAT(of(selects)->excluded, ElementsAre("b"));
}

TEST_F(FitsTest, AChangeOfSlurmsNodesIsSeen) {
  EXPECT_THAT(of(pod)->excluded, IsEmpty());
  slurm_node("c");
  EXPECT_THAT(of(pod)->excluded, ElementsAre("c")) << "there is a node without a Kubernetes node";
  now.nodes.erase("b");
  EXPECT_EQ(of(pod)->fitting, 1U) << "a node is gone";
  slurm_node("a").partitions = {"other"};
  EXPECT_EQ(of(pod)->fitting, 0U) << "a node is in another partition";
  slurm_node("a").extra = extra_of({{7}, "cluster-b"});
  EXPECT_THAT(of(pod)->excluded, ElementsAre("a", "c")) << "the bridge of another cluster uses a node";
}

TEST_F(FitsTest, OtherChangesOfSlurmsNodesKeepAll) {
  const FitPtr fit = of(pod);
  slurm_node("a").state.base = "ALLOCATED";
  EXPECT_EQ(of(pod), fit);
  slurm_node("a").extra = extra_of({{7}, "cluster-a"});
  EXPECT_EQ(of(pod), fit);
}

TEST_F(FitsTest, AnotherInstallationSeesOtherNodes) {
  slurm_node("a").extra = extra_of({{7}, "cluster-a"});
  EXPECT_THAT(of(pod)->excluded, IsEmpty());
  fits.follow(hosts, std::make_shared<const slurm::Snapshot>(now), "cluster-b");
  EXPECT_THAT(fits.of(pod, "batch")->excluded, ElementsAre("a"));
}

TEST_F(FitsTest, WithoutAnAnswerOfSlurmThereIsNone) {
  (void)of(pod);
  fits.follow(hosts, nullptr, "cluster-a");
  EXPECT_EQ(fits.of(pod, "batch"), nullptr);
}

TEST_F(FitsTest, TheirNumberIsLimited) {
  for (std::size_t cpus = 0; cpus < 3 * Fits::kMost; ++cpus) {
    EXPECT_NE(of(pod_with({{"cpu", static_cast<long double>(cpus)}})), nullptr);
    EXPECT_LE(fits.size(), Fits::kMost);
  }
}

}  // namespace
}  // namespace bridge
