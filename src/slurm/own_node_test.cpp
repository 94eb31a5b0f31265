#include "slurm/own_node.hpp"

#include <gtest/gtest.h>

#include "plan/testing/observing.hpp"

namespace slurm {
namespace {

const NodeWish kWish{.name = "a", .address = "10.0.0.7", .cpus = 4, .real_memory_mib = 8000, .gpus = 0, .features = {"batch"}};
const NodeMark kMark{Owner::kBridge, "uid", made_of(kWish)};

Node external(std::vector<std::string> features) {
  Node out;
  out.name = "a";
  out.state.base = "IDLE";
  out.state.flags = {"EXTERNAL"};
  out.features = std::move(features);
  return out;
}

TEST(OwnNode, TheLineHasTheMarkAmongItsFeatures) {
  EXPECT_EQ(node_line(kWish, kMark),
            "NodeName=a NodeAddr=10.0.0.7 State=EXTERNAL CPUs=4 Sockets=1 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=8000 "
            "Features=slurm-bridge/uid/" +
                kMark.made + ",batch");
  EXPECT_EQ(mark_of(external({"batch", kMark.feature()})), kMark);
}

TEST(OwnNode, ADigestTellsWhatOnlyAnotherRecordCanChange) {
  NodeWish other = kWish;
  other.features = {};
  EXPECT_EQ(made_of(other), made_of(kWish));
  other.real_memory_mib = 8001;
  EXPECT_NE(made_of(other), made_of(kWish));
  other = kWish;
  other.address = "10.0.0.8";
  EXPECT_NE(made_of(other), made_of(kWish));
}

TEST(OwnNode, AMarkIsReadOnlyWhereItIsWhole) {
  for (const char* feature :
       {"slurm-bridge", "slurm-bridge/", "slurm-bridge/uid", "slurm-bridge//x", "slurm-bridge/uid/", "k8s/a/b"})
    EXPECT_FALSE(mark_of(external({feature}))) << feature;
  EXPECT_FALSE(mark_of(external({"slurm-bridge/uid/a", "slurm-bridge/uid/b"})));
  Node with_slurmd = external({kMark.feature()});
  with_slurmd.state.flags.clear();
  EXPECT_FALSE(mark_of(with_slurmd));
}

TEST(OwnNode, WordsThatSlurmWouldReadOtherwiseAreNotPlain) {
  for (const char* word : {"a", "node-1.example.com", "fe80::1", "10.0.0.7"}) EXPECT_TRUE(is_plain_word(word)) << word;
  for (const char* word : {"", "a b", "a,b", "a[1-2]", "a=b", "a\nb", "\"a\""}) EXPECT_FALSE(is_plain_word(word)) << word;
}

struct OwnDrainedTest : testing::Test {
  plan::testing::Observer observer;
  Snapshot snapshot;
  Node node = external({kMark.feature()});

  std::optional<OwnDrained> evidence(const std::string& instance = "uid") {
    snapshot.health = Snapshot::Health::kComplete;
    snapshot.nodes.emplace("a", std::make_shared<const Node>(node));
    return OwnDrained::of(observer.at(core::MonoTime{}), snapshot, {"c", "a"}, Owner::kBridge, instance);
  }
};

TEST_F(OwnDrainedTest, TheOwnerAloneHasItDrained) {
  node.state.flags.insert("DRAIN");
  node.reason = "slurm-bridge: x";
  const auto own = evidence();
  ASSERT_TRUE(own);
  EXPECT_EQ(own->mark(), kMark);
}

TEST_F(OwnDrainedTest, NotForAnotherInstallation) {
  node.state.flags.insert("DRAIN");
  node.reason = "slurm-bridge: x";
  EXPECT_FALSE(evidence("another"));
}

TEST_F(OwnDrainedTest, NotWhileSomebodyElseHoldsIt) {
  node.state.flags.insert("DRAIN");
  node.reason = "slurm-operator: y; slurm-bridge: x";
  EXPECT_FALSE(evidence());
}

TEST_F(OwnDrainedTest, NotWhileItIsInService) {
  node.reason = "slurm-bridge: x";
  EXPECT_FALSE(evidence());
}

}  // namespace
}  // namespace slurm
