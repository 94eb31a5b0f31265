#include "slurm/holds.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace slurm {
namespace {

using enum Owner;

TEST(Holds, AReasonTellsItsOwner) {
  EXPECT_EQ(Holds::read("slurm-operator: scale in").why(kOperator), "scale in");
  EXPECT_EQ(Holds::read("slurm-bridge: pods run there").why(kBridge), "pods run there");
  EXPECT_EQ(Holds::read("slurm-enlist: its machine leaves").why(kEnlistment), "its machine leaves");
  for (const char* reason : {"", "slurm-operator", "slurm-operator:x", "bad disk; slurm-operator: x", "Not responding"}) {
    EXPECT_TRUE(Holds::read(reason).none()) << reason;
  }
}

TEST(Holds, SeveralStandSideBySideInOneOrder) {
  const Holds both = Holds().hold(kBridge, "pods run there").hold(kOperator, "Node (a) was cordoned");
  EXPECT_EQ(both.reason(), "slurm-operator: Node (a) was cordoned; slurm-bridge: pods run there");
  EXPECT_TRUE(both.others_than(kOperator));
  EXPECT_FALSE(Holds().hold(kOperator, "x").others_than(kOperator));
  EXPECT_TRUE(Holds().hold(kOperator, "x").others_than(kBridge));
  EXPECT_EQ(Holds(both).release(kOperator).reason(), "slurm-bridge: pods run there");
  EXPECT_EQ(Holds(both).release(kOperator).release(kBridge).reason(), "");
}

TEST(Holds, BridgesOfSeveralClustersHoldOneNode) {
  const Holder here{kBridge, "u1"}, there{kBridge, "u2"};
  const Holds both = Holds().hold(there, "Node (b) is not ready").hold(here, "Node (a) was cordoned").hold(kEnlistment, "x");
  EXPECT_EQ(
      both.reason(),
      "slurm-bridge: Node (a) was cordoned, cluster u1; slurm-bridge: Node (b) is not ready, cluster u2; slurm-enlist: x");
  EXPECT_EQ(Holds::read(both.reason()).all(), both.all());
  EXPECT_EQ(Holds(both).release(here).release(kEnlistment).reason(), "slurm-bridge: Node (b) is not ready, cluster u2");
  EXPECT_FALSE(both.has(kBridge)) << "it names no cluster";
  EXPECT_TRUE(given_by_others("slurm-bridge: x, cluster u1", there));
  EXPECT_EQ(said_by_others(both.reason(), here), "slurm-bridge: Node (b) is not ready, cluster u2; slurm-enlist: x");
  EXPECT_EQ(Holds::read("slurm-operator: x, cluster u1").why(kOperator), "x, cluster u1");
}

TEST(Holds, WhatSlurmctldAddsIsNoPartOfThem) {
  const Holds holds = Holds::read("slurm-operator: a; slurm-enlist: b : Not responding");
  EXPECT_EQ(holds.why(kOperator), "a");
  EXPECT_EQ(holds.why(kEnlistment), "b");
}

RC_GTEST_PROP(Holds, WhatIsWrittenIsReadAgain, ()) {
  // Random texts from pieces of real reasons, so that some of them look like holds.
  const auto text = [] {
    std::string out = "because ";
    for (const auto& part : *rc::gen::container<std::vector<std::string>>(
             rc::gen::element<std::string>("slurm-bridge: ", "; ", "slurm-operator", ": ", "slurm-enlist: ", "x", " ")))
      out += part;
    return out + "end";
  };
  Holds holds;
  for (const Holder& holder : {Holder(kOperator), Holder(kBridge), Holder(kBridge, "u1"), {kBridge, "u2"}, {kEnlistment}}) {
    if (*rc::gen::arbitrary<bool>()) holds.hold(holder, text());
  }
  RC_ASSERT(Holds::read(holds.reason()).all() == holds.all());
}

TEST(Holds, AnotherProgramsWordIsSomebodyElses) {
  EXPECT_FALSE(given_by_others("slurm-operator: x", kOperator));
  EXPECT_FALSE(given_by_others("", kOperator));
  EXPECT_FALSE(given_by_others("Not responding", kOperator));
  EXPECT_TRUE(given_by_others("bad disk", kOperator));
  EXPECT_TRUE(given_by_others("slurm-bridge: x", kOperator));
  EXPECT_TRUE(given_by_others("slurm-operator: x; slurm-bridge: y", kOperator));
}

TEST(Holds, WhatOthersSayIsTold) {
  EXPECT_EQ(said_by_others("bad disk", kOperator), "bad disk");
  EXPECT_EQ(said_by_others("bad disk : Not responding", kOperator), "bad disk");
  EXPECT_EQ(said_by_others("slurm-operator: y; slurm-bridge: x", kOperator), "slurm-bridge: x");
  EXPECT_EQ(said_by_others("slurm-operator: y", kOperator), "");
  EXPECT_EQ(said_by_others("Not responding", kOperator), "");
  EXPECT_EQ(said_by_others("", kOperator), "");
}

TEST(Holds, AWordCanStandBesideThatOfAProgramOnly) {
  Node node;
  node.state = {"IDLE", {"DRAIN"}};
  const auto beside = [&](const char* reason) {
    node.reason = reason;
    return drained_without(node, kOperator);
  };
  EXPECT_TRUE(beside("slurm-bridge: x"));
  EXPECT_FALSE(beside("slurm-operator: y; slurm-bridge: x"));
  EXPECT_FALSE(beside("bad disk"));
  EXPECT_FALSE(beside(""));
  node.reason = "slurm-bridge: x, cluster u1";
  EXPECT_TRUE(drained_without(node, {kBridge, "u2"}));
  EXPECT_FALSE(drained_without(node, {kBridge, "u1"}));
  node.state.flags = {};
  EXPECT_FALSE(beside("slurm-bridge: x")) << "left over";
}

}  // namespace
}  // namespace slurm
