#include "sim/programs/operator/oracles/drains.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/well_known.hpp"
#include "sim/programs/operator/world.hpp"
#include "slinky/names.hpp"

namespace sim {
namespace {

using core::Duration;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace kinds = kube::resources;

/// Two idle workers. The tests report to the oracle that the operator drains one of the workers.
class DrainOracleTest : public testing::Test {
 protected:
  void SetUp() override {
    world.found_cluster(2);
    ASSERT_THAT(world.settle(Duration{180000}), IsEmpty());
    world.loop().run_for(Duration{120000});
    world.pause(0, std::chrono::hours{1});
  }
  void drain(const std::string& reason = "slurm-operator: for a test", const std::string& node = "cpu-0") {
    const SlurmSite::Cluster* cluster = world.site().find({World::kNamespace, World::kCluster});
    oracle.drained(*cluster, *cluster->slurm->node(node), reason);
  }
  [[nodiscard]] const std::vector<std::string>& violations() { return told; }

  OperatorWorld world;
  std::vector<std::string> told;
  DrainOracle oracle{world.loop(), world.api(), [this](std::string text) { told.push_back(std::move(text)); }};
};

TEST_F(DrainOracleTest, WithoutACauseItIsNone) {
  drain();
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("node cpu-0 was drained for no cause")));
}

TEST_F(DrainOracleTest, ACordonIsACauseForAWhile) {
  const auto cordon = [&](const core::Json& value) {
    world.merge(kinds::kPod, "cpu-0", {{"metadata", {{"annotations", {{std::string(api::kAnnotationPodCordon), value}}}}}});
  };
  cordon("true");
  cordon(nullptr);
  world.loop().run_for(Duration{60000});
  drain();
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(DrainOracleTest, SoIsATaintThatAnnouncesTheEndOfItsMachine) {
  const std::string machine = core::get_string(*world.find(kinds::kPod, "cpu-0"), {"spec", "nodeName"});
  const auto taint = [&](std::string_view key) {
    world.merge(kinds::kNode, machine, {{"spec", {{"taints", {{{"key", key}, {"effect", "NoSchedule"}}}}}}});
  };
  taint("DeletionCandidateOfClusterAutoscaler");
  drain();
  EXPECT_EQ(violations().size(), 1U);
  taint(api::kDrainTaints.front());
  drain();
  EXPECT_EQ(violations().size(), 1U);
}

TEST_F(DrainOracleTest, SoIsAScaleInThatWasTakenBack) {
  for (const int replicas : {1, 2}) world.merge(slinky::resources::kNodeSet, "cpu", {{"spec", {{"replicas", replicas}}}});
  drain();
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(DrainOracleTest, ALongTimeAfterItIsNotAnyMore) {
  for (const int replicas : {1, 2}) world.merge(slinky::resources::kNodeSet, "cpu", {{"spec", {{"replicas", replicas}}}});
  world.loop().run_for(Duration{120000});
  drain();
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("for no cause")));
}

TEST_F(DrainOracleTest, SoIsANewerTemplateThatRolls) {
  const char* kUpdated = "slurm-operator: NodeSet default/cpu is being updated";
  const std::string revision = world.names(kinds::kControllerRevision).at(0);
  const auto rolls = [&](const char* value) {
    world.merge(kinds::kControllerRevision, revision,
                {{"metadata", {{"annotations", {{std::string(api::kAnnotationRolls), value}}}}}});
  };
  rolls("true");
  drain(kUpdated);
  EXPECT_EQ(violations().size(), 1U) << "the worker is of it";
  world.merge(kinds::kPod, "cpu-0", {{"metadata", {{"labels", {{std::string(api::kLabelRevisionHash), "earlier"}}}}}});
  drain(kUpdated);
  EXPECT_EQ(violations().size(), 1U);
  drain();
  EXPECT_EQ(violations().size(), 2U) << "with a reason that is not that";
  rolls("false");
  drain(kUpdated);
  EXPECT_EQ(violations().size(), 3U) << "it was only recorded";
}

TEST_F(DrainOracleTest, BelowThePartitionThereIsNone) {
  const char* kUpdated = "slurm-operator: NodeSet default/cpu is being updated";
  world.merge(kinds::kControllerRevision, world.names(kinds::kControllerRevision).at(0),
              {{"metadata", {{"annotations", {{std::string(api::kAnnotationRolls), "true"}}}}}});
  world.merge(kinds::kPod, "cpu-0", {{"metadata", {{"labels", {{std::string(api::kLabelRevisionHash), "earlier"}}}}}});
  world.merge(slinky::resources::kNodeSet, "cpu", {{"spec", {{"updateStrategy", {{"rollingUpdate", {{"partition", 1}}}}}}}});
  drain(kUpdated);
  EXPECT_THAT(violations(), IsEmpty()) << "the operator may not know yet";
  world.loop().run_for(Duration{120000});
  drain(kUpdated);
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("for no cause")));
}

TEST_F(DrainOracleTest, OutsideOfTheWindowThereIsNone) {
  const char* kUpdated = "slurm-operator: NodeSet default/cpu is being updated";
  world.merge(kinds::kControllerRevision, world.names(kinds::kControllerRevision).at(0),
              {{"metadata", {{"annotations", {{std::string(api::kAnnotationRolls), "true"}}}}}});
  world.merge(kinds::kPod, "cpu-0", {{"metadata", {{"labels", {{std::string(api::kLabelRevisionHash), "earlier"}}}}}});
  world.merge(
      slinky::resources::kNodeSet, "cpu",
      {{"spec",
        {{"updateStrategy",
          {{"type", "ScheduledUpdate"}, {"scheduledUpdate", {{"startTime", "2050-01-01T00:00:00Z"}, {"duration", "1h"}}}}}}}});
  drain(kUpdated);
  EXPECT_THAT(violations(), IsEmpty()) << "the operator may not know yet";
  world.loop().run_for(Duration{120000});
  drain(kUpdated);
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("for no cause")));
  const std::int64_t now = world.slurm()->now_seconds();
  ASSERT_EQ(world.slurm()->create_reservation("x", {{"cpu-0"}, "slurm", {"MAINT", "IGNORE_JOBS"}, now, now + 600}),
            SlurmErrno::kSuccess);
  drain(kUpdated);
  EXPECT_EQ(violations().size(), 1U);
}

TEST_F(DrainOracleTest, AnAdministratorsWordIsHis) {
  drain("disk is failing");
  EXPECT_THAT(violations(), IsEmpty());
}

/// Workers that are bound to their machines.
class DaemonDrainOracleTest : public DrainOracleTest {
 protected:
  void SetUp() override {
    world.found_cluster(1);
    label("slurm");
    world.merge(slinky::resources::kNodeSet, "cpu",
                {{"spec", {{"scalingMode", "DaemonSet"}, {"template", {{"spec", {{"nodeSelector", {{"pool", "slurm"}}}}}}}}}});
    ASSERT_THAT(world.settle(Duration{300000}), IsEmpty());
    world.loop().run_for(Duration{120000});
    world.pause(0, std::chrono::hours{1});
  }
  void label(const core::Json& pool) { world.merge(kinds::kNode, "kube-0", {{"metadata", {{"labels", {{"pool", pool}}}}}}); }
  void drain() { DrainOracleTest::drain("slurm-operator: for a test", "kube-0"); }
};

TEST_F(DaemonDrainOracleTest, ItsMachineIsACauseWhereItDoesNotMatchAndForAWhile) {
  drain();
  EXPECT_EQ(violations().size(), 1U);
  label("other");
  drain();
  label("slurm");
  drain();
  EXPECT_EQ(violations().size(), 1U);
  world.loop().run_for(Duration{120000});
  drain();
  EXPECT_EQ(violations().size(), 2U);
}

TEST_F(DaemonDrainOracleTest, SoIsAnotherNameThatItsMachineGives) {
  world.merge(kinds::kNode, "kube-0",
              {{"metadata", {{"annotations", {{std::string(api::kAnnotationNodeHostnameOverride), "rack-1"}}}}}});
  world.loop().run_for(Duration{120000});
  drain();
  EXPECT_THAT(violations(), IsEmpty());
}

}  // namespace
}  // namespace sim
