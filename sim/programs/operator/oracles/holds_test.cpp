#include "sim/programs/operator/oracles/holds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/programs/operator/oracles/agents.hpp"
#include "sim/programs/operator/oracles/testing/oracles_test.hpp"
#include "slinky/names.hpp"

namespace sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace kinds = kube::resources;

TEST_F(OraclesTest, TheRecordThatAnAdminHoldsStaysWhileItsWorkerIsWanted) {
  set_state("cpu-0", "DRAIN", kSlurmAdmin);
  world.loop().run_for(core::Duration{120000});
  ASSERT_EQ(world.slurm()->delete_node("cpu-0"), SlurmErrno::kSuccess);
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("the record of node cpu-0 was deleted, which an admin holds")));
}

TEST_F(OraclesTest, SoDoesThatOfAWorkerThatIsBoundToAMachine) {
  const auto label = [&](const core::Json& pool) {
    world.merge(kinds::kNode, "kube-0", {{"metadata", {{"labels", {{"pool", pool}}}}}});
  };
  label("slurm");
  world.merge(slinky::resources::kNodeSet, "cpu",
              {{"spec", {{"scalingMode", "DaemonSet"}, {"template", {{"spec", {{"nodeSelector", {{"pool", "slurm"}}}}}}}}}});
  ASSERT_THAT(world.settle(core::Duration{300000}), IsEmpty());
  set_state("kube-0", "DRAIN", kSlurmAdmin);
  world.loop().run_for(core::Duration{120000});
  world.pause(0, core::Duration{60000});
  ASSERT_EQ(world.slurm()->delete_node("kube-0"), SlurmErrno::kSuccess);
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("the record of node kube-0 was deleted, which an admin holds")));
}

TEST_F(OraclesTest, TheRecordThatAnAdminHoldsOutlivesAWorkerThatIsNotWanted) {
  set_state("cpu-0", "DRAIN", kSlurmAdmin);
  world.loop().run_for(core::Duration{120000});
  world.merge(slinky::resources::kNodeSet, "cpu", {{"spec", {{"replicas", 0}}}});
  ASSERT_THAT(world.settle(core::Duration{60000}), IsEmpty());
  EXPECT_NE(world.slurm()->node("cpu-0"), nullptr) << "a next worker of the name is to be drained as well";
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(OraclesTest, WhatAnAdminFreedIsNotDrainedAgainByItsNextRecord) {
  SimNode made = *world.slurm()->node("cpu-1");
  made.drain = true;
  made.reason = slinky::kDrainedBefore;
  set_state("cpu-1", "DRAIN", kSlurmAdmin);
  world.slurm()->on_new(made);
  EXPECT_THAT(violations(), IsEmpty());
  set_state("cpu-1", "RESUME", kSlurmAdmin);
  world.slurm()->on_new(made);
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("node cpu-1 registers drained, as it was before an admin freed it")));
}

/// Slurm stores one reason and no owner. So nobody can tell a DOWN that UNDRAIN left from a DOWN that the administrator set.
TEST_F(OraclesTest, TheDownThatAnAdminsUndrainLeavesUnderItsReasonOutlivesTheWorkerToo) {
  world.pause(0, core::Duration{60000});  // otherwise, the operator would delete the record at once
  world.merge(slinky::resources::kNodeSet, "cpu", {{"spec", {{"replicas", 1}}}});
  world.remove(kinds::kPod, "cpu-1");
  const auto gone = [&] { return world.find(kinds::kPod, "cpu-1") == nullptr; };
  ASSERT_TRUE(world.loop().run_until(gone, core::Duration{30000}));
  set_state("cpu-1", "UNDRAIN", kSlurmAdmin);
  EXPECT_THAT(world.oracles().unmet(), testing::Contains(HasSubstr("node cpu-1 is a record without a pod: DOWN")))
      << "of its preStop";
  SimNodeUpdate change;
  change.state = "DRAIN";
  change.reason = "disk is failing";
  ASSERT_EQ(world.slurm()->update_node("cpu-1", change, std::string(kSlurmAdmin)), SlurmErrno::kSuccess);
  set_state("cpu-1", "UNDRAIN", kSlurmAdmin);
  ASSERT_THAT(world.settle(core::Duration{180000}), IsEmpty());
  ASSERT_NE(world.slurm()->node("cpu-1"), nullptr);
  EXPECT_TRUE(world.slurm()->node("cpu-1")->down);
  set_state("cpu-1", "RESUME", kSlurmAdmin);
  EXPECT_THAT(world.settle(core::Duration{180000}), IsEmpty());
  EXPECT_EQ(world.slurm()->node("cpu-1"), nullptr) << "that word has ended";
  EXPECT_THAT(violations(), IsEmpty());
}

/// Slurm has overwritten the administrator's reason, so nobody can know it any more.
TEST_F(OraclesTest, TheRecordOfAWorkerThatSlurmRefusesMayGoWithTheAdminsWord) {
  set_state("cpu-0", "DRAIN", kSlurmAdmin);
  world.loop().run_for(core::Duration{120000});
  world.slurm()->set_memory(500);
  world.slurm()->reload_slurmd("cpu-0");
  ASSERT_TRUE(world.slurm()->node("cpu-0")->invalid_reg);
  ASSERT_EQ(world.slurm()->delete_node("cpu-0"), SlurmErrno::kSuccess);
  EXPECT_THAT(violations(), IsEmpty());
}

/// Slurm overwrites an administrator's reason at every registration that it refuses, and at no other registration.
TEST_F(OraclesTest, WhereSlurmRefusesAWorkerTheReasonTellsWhetherItsRecordOutlivesIt) {
  world.pause(0, core::Duration{60000});  // otherwise, the operator would delete the record at once
  world.merge(slinky::resources::kNodeSet, "cpu", {{"spec", {{"replicas", 1}}}});
  world.slurm()->set_memory(500);
  world.slurm()->reload_slurmd("cpu-1");
  world.slurm()->set_memory(SlurmOptions{}.memory);
  ASSERT_TRUE(world.slurm()->node("cpu-1")->invalid_reg);
  world.kube().nodes().fail_pod({World::kNamespace, "cpu-1"});
  world.remove(kinds::kPod, "cpu-1");
  const auto gone = [&] { return world.find(kinds::kPod, "cpu-1") == nullptr; };
  ASSERT_TRUE(world.loop().run_until(gone, core::Duration{30000}));
  set_state("cpu-1", "DRAIN", kSlurmAdmin);
  EXPECT_THAT(world.oracles().unmet(), testing::Contains(HasSubstr("node cpu-1 is a record without a pod")))
      << "the reason is Slurm's, though an admin drained it too";
  SimNodeUpdate change;
  change.state = "DRAIN";
  change.reason = "disk is failing";
  ASSERT_EQ(world.slurm()->update_node("cpu-1", change, std::string(kSlurmAdmin)), SlurmErrno::kSuccess);
  ASSERT_THAT(world.settle(core::Duration{180000}), IsEmpty());
  world.loop().run_for(core::Duration{400000});  // slurmctld sets the node DOWN meanwhile, and extends the reason
  EXPECT_THAT(world.oracles().unmet(), IsEmpty());
  EXPECT_NE(world.slurm()->node("cpu-1"), nullptr) << "a next worker of the name is to be drained as well";
  EXPECT_THAT(violations(), IsEmpty());
}

}  // namespace
}  // namespace sim
