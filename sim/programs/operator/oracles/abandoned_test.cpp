#include "sim/programs/operator/oracles/abandoned.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/well_known.hpp"
#include "sim/programs/operator/oracles/agents.hpp"
#include "sim/programs/operator/oracles/objects.hpp"
#include "sim/programs/operator/oracles/testing/oracles_test.hpp"
#include "slinky/names.hpp"

namespace sim {
namespace {

using core::Json;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
namespace kinds = kube::resources;

/// When the cluster of these records returns, nobody can tell whose records they are, because they have no comment.
TEST_F(OraclesTest, RecordsOfWorkersThatWentWithoutAControllerAreNobodys) {
  world.pause(0, core::Duration{60000});
  for (const char* node : {"cpu-0", "cpu-1"}) {
    SimNodeUpdate change;
    change.comment = "";
    ASSERT_EQ(world.slurm()->update_node(node, change, std::string(kSlurmAdmin)), SlurmErrno::kSuccess);
  }
  world.tear_away(slinky::resources::kController, World::kCluster);
  world.tear_away(slinky::resources::kNodeSet, "cpu");
  // preStop finds no slurmctld.
  ASSERT_TRUE(world.loop().run_until([&] { return world.slurm() == nullptr; }, core::Duration{30000}));
  for (const char* pod : {"cpu-0", "cpu-1"}) world.remove(kinds::kPod, pod);
  world.loop().run_for(core::Duration{60000});
  ASSERT_THAT(world.workers(), IsEmpty());
  world.apply(controller_json());
  EXPECT_THAT(world.settle(core::Duration{900000}), IsEmpty());
  EXPECT_NE(world.slurm()->node("cpu-0"), nullptr);
}

TEST_F(OraclesTest, AndOfThoseThatANodeSetLeftWhileSlurmctldWasAway) {
  ASSERT_NO_FATAL_FAILURE(leave_unmarked_records());
  SimSlurm& slurm = *world.slurm();
  slurm.stop();
  world.tear_away(slinky::resources::kNodeSet, "cpu");
  ASSERT_EQ(world.find(slinky::resources::kNodeSet, "cpu"), nullptr);
  ASSERT_TRUE(slurm.start());
  EXPECT_THAT(world.settle(core::Duration{900000}), IsEmpty());
  EXPECT_NE(slurm.node("cpu-0"), nullptr);
}

TEST_F(OraclesTest, AndOfThoseThatANodeSetLeftThatWentAlone) {
  ASSERT_NO_FATAL_FAILURE(leave_unmarked_records());
  SimSlurm& slurm = *world.slurm();
  world.remove(slinky::resources::kNodeSet, "cpu", "Orphan");
  // Leaves only this finalizer, as the operator does. The NodeSet then waits for no record.
  world.merge(slinky::resources::kNodeSet, "cpu", {{"metadata", {{"finalizers", Json::array({"orphan"})}}}});
  const auto alone = [&] { return world.find(slinky::resources::kNodeSet, "cpu") == nullptr; };
  ASSERT_TRUE(world.loop().run_until(alone, core::Duration{20000}));
  ASSERT_TRUE(slurm.up());
  EXPECT_THAT(world.settle(core::Duration{900000}), IsEmpty());
  EXPECT_NE(slurm.node("cpu-0"), nullptr);
}

/// With scalingMode DaemonSet, if the record has no comment, only the machine's name shows whose record it is.
class RenamedMachineTest : public OraclesTest {
 protected:
  static constexpr const char* kMachine = "kube-0";
  void SetUp() override {
    OraclesTest::SetUp();
    world.merge(slinky::resources::kNodeSet, "cpu", {{"spec", {{"scalingMode", "DaemonSet"}}}});
    ASSERT_THAT(world.settle(core::Duration{900000}), IsEmpty());
    ASSERT_NE(world.slurm()->node(kMachine), nullptr);
  }
  /// Deletes the worker while the operator is down, without any trace of its owner, and renames the machine later.
  void lose_and_rename(core::Duration between) {
    world.crash(0, between + core::Duration{30000});
    world.loop().run_for(core::Duration{1});
    SimNodeUpdate change;
    change.comment = "";
    ASSERT_EQ(world.slurm()->update_node(kMachine, change, std::string(kSlurmAdmin)), SlurmErrno::kSuccess);
    for (const std::string& pod : world.workers()) {
      if (slurm_node_of(*world.find(kinds::kPod, pod)) != kMachine) continue;
      world.kube().nodes().fail_pod({World::kNamespace, pod});  // so that no preStop writes the operator's reason
      world.remove(kinds::kPod, pod);
    }
    world.loop().run_for(between);
    world.merge(kinds::kNode, kMachine,
                {{"metadata", {{"annotations", {{std::string(api::kAnnotationNodeHostnameOverride), "rack-0"}}}}}});
  }
};

TEST_F(RenamedMachineTest, ARecordThatNobodyCouldMarkBeforeIsNobodys) {
  ASSERT_NO_FATAL_FAILURE(lose_and_rename(core::Duration{20000}));
  EXPECT_THAT(world.settle(core::Duration{900000}), IsEmpty());
  EXPECT_NE(world.slurm()->node(kMachine), nullptr);
}

TEST_F(RenamedMachineTest, ButNotWhereThereWasTimeToTellOfIt) {
  ASSERT_NO_FATAL_FAILURE(lose_and_rename(core::Duration{240000}));
  EXPECT_THAT(world.settle(core::Duration{900000}), Contains(HasSubstr("node kube-0 is a record without a pod")));
}

}  // namespace
}  // namespace sim
