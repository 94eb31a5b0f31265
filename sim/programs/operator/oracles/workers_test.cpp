#include "sim/programs/operator/oracles/workers.hpp"

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
using testing::Pair;
namespace kinds = kube::resources;

TEST_F(OraclesTest, AnIdleWorkerMayNotGoWhileSlurmCouldGiveItJobs) {
  delete_worker("cpu-0");
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("worker default/cpu-0 was deleted while Slurm could give it jobs")));
}

TEST_F(OraclesTest, AWorkerThatIsDrainedOrUnknownToSlurmMayGo) {
  set_state("cpu-0", "DRAIN", kSlurmAdmin);
  delete_worker("cpu-0");
  ASSERT_EQ(world.slurm()->delete_node("cpu-1", std::string(kSlurmAdmin)), SlurmErrno::kSuccess);
  delete_worker("cpu-1");
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(OraclesTest, WorkersGoWithTheirCluster) {
  delete_controller("Immediate");
  delete_worker("cpu-0");
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(OraclesTest, WorkersStayWhenTheirControllerIsTornAway) {
  world.tear_away(slinky::resources::kController, World::kCluster);
  delete_worker("cpu-0");
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("while Slurm could give it jobs")));
  world.loop().run_for(core::Duration{120000});
  EXPECT_THAT(world.workers(), ElementsAre("cpu-1"));
  delete_worker("cpu-1");
  EXPECT_THAT(violations(), ElementsAre(testing::_, HasSubstr("cpu-1 was deleted while there was no Controller")));
}

TEST_F(OraclesTest, WorkersOfAClusterThatDrainsFirstStay) {
  delete_controller("Drain");
  delete_worker("cpu-0");
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("while Slurm could give it jobs")));
}

TEST_F(OraclesTest, TheRecordOfAWorkerMayNotGoWhileSlurmCouldGiveItJobs) {
  ASSERT_EQ(world.slurm()->delete_node("cpu-0"), SlurmErrno::kSuccess);
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("the record of node cpu-0 was deleted under worker default/cpu-0")));
}

TEST_F(OraclesTest, TheRecordOfADrainedWorkerMayGo) {
  set_state("cpu-0", "DRAIN", kSlurmAdmin);
  ASSERT_EQ(world.slurm()->delete_node("cpu-0"), SlurmErrno::kSuccess);
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(OraclesTest, NoSlurmdIsEndedWithItsPodWhereJobsMayStart) {
  world.pause(0, core::Duration{60000});  // otherwise, the operator would drain the node as well
  world.remove(kinds::kPod, "cpu-0");
  ASSERT_TRUE(world.loop().run_until([&] { return world.slurm()->node("cpu-0")->drain; }, core::Duration{30000}));
  set_state("cpu-0", "RESUME", "slurm");
  world.loop().run_for(core::Duration{1000});
  EXPECT_THAT(violations(), testing::Contains(HasSubstr("Slurm may start jobs there")));
}

TEST_F(OraclesTest, WhatAnAdminFreesAfterTheLookIsNotSeen) {
  for (const char* node : {"cpu-0", "cpu-1"}) {
    set_state(node, "DRAIN", kSlurmAdmin);
    look_at(node);
    set_state(node, "RESUME", kSlurmAdmin);
  }
  delete_worker("cpu-0");
  ASSERT_EQ(world.slurm()->delete_node("cpu-1"), SlurmErrno::kSuccess);
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(OraclesTest, WhatBeginsThereThenIsTheAdmins) {
  world.pause(0, core::Duration{60000});  // otherwise, the operator would look at the nodes, too
  set_state("cpu-0", "DRAIN", kSlurmAdmin);
  look_at("cpu-0");
  set_state("cpu-0", "RESUME", kSlurmAdmin);
  ASSERT_TRUE(start_job());
  delete_worker("cpu-0");
  world.loop().run_for(core::Duration{1000});
  EXPECT_THAT(world.judges().jobs().losses(), ElementsAre(Pair(Blame::kAdmin, 1)));
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(OraclesTest, NotWhatBeginsWhereTheLookCameAfterTheAdmin) {
  world.pause(0, core::Duration{60000});
  set_state("cpu-0", "DRAIN", kSlurmAdmin);
  set_state("cpu-0", "RESUME", kSlurmAdmin);
  look_at("cpu-0");
  ASSERT_TRUE(start_job());
  delete_worker("cpu-0");
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("worker default/cpu-0 was deleted while job")));
}

TEST_F(OraclesTest, NorWhatBeginsByOurOwnResume) {
  world.pause(0, core::Duration{60000});
  set_state("cpu-0", "DRAIN", "slurm");
  look_at("cpu-0");
  set_state("cpu-0", "RESUME", "slurm");
  ASSERT_TRUE(start_job());
  delete_worker("cpu-0");
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("worker default/cpu-0 was deleted while job")));
}

TEST_F(OraclesTest, ALookBeforeTheDrainOrBeforeOurOwnResumeIsNone) {
  look_at("cpu-0");
  set_state("cpu-0", "DRAIN", "slurm");
  set_state("cpu-0", "RESUME", "slurm");
  delete_worker("cpu-0");
  EXPECT_EQ(violations().size(), 1U);
  set_state("cpu-1", "DRAIN", "slurm");
  look_at("cpu-1");
  set_state("cpu-1", "RESUME", "slurm");
  delete_worker("cpu-1");
  EXPECT_EQ(violations().size(), 2U);
}

}  // namespace
}  // namespace sim
