#include "sim/programs/operator/oracles/declared_state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/well_known.hpp"
#include "sim/programs/operator/oracles/agents.hpp"
#include "sim/programs/operator/oracles/testing/oracles_test.hpp"
#include "slinky/names.hpp"

namespace sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace kinds = kube::resources;

TEST_F(OraclesTest, WhatAnAdminHoldsIsReadyButForAllOfThem) {
  for (const char* node : {"cpu-0", "cpu-1"}) {
    SimNodeUpdate change;
    change.state = "DRAIN";
    change.reason = "disk is failing";
    ASSERT_EQ(world.slurm()->update_node(node, change, std::string(kSlurmAdmin)), SlurmErrno::kSuccess);
    EXPECT_THAT(world.settle(core::Duration{60000}), IsEmpty()) << node;
  }
}

TEST_F(OraclesTest, AWorkerThatHasFailedOnAMachineThatIsCutOffIsWaitedFor) {
  const std::string machine = core::get_string(*world.find(kinds::kPod, "cpu-0"), {"spec", "nodeName"});
  world.kube().nodes().cut_node(machine);
  EXPECT_THAT(world.oracles().unmet(), IsEmpty()) << "its slurmd lives on";
  world.kube().nodes().fail_pod({World::kNamespace, "cpu-0"});
  world.loop().run_for(core::Duration{10000});
  EXPECT_THAT(world.oracles().unmet(), ElementsAre("pod default/cpu-0 has no slurmd"));
  world.kube().nodes().heal_node(machine);
  EXPECT_THAT(world.settle(core::Duration{180000}), IsEmpty());
  EXPECT_EQ(world.judges().starts()["pod cpu-0"], 2) << "the operator replaced it when it heard of that";
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(OraclesTest, AnotherClustersPodIsNoneForARecord) {
  EXPECT_THAT(world.oracles().unmet(), IsEmpty());
  world.merge(kinds::kPod, "cpu-0", {{"metadata", {{"labels", {{std::string(api::kLabelCluster), "another"}}}}}});
  EXPECT_THAT(world.oracles().unmet(), testing::Contains(HasSubstr("node cpu-0 is a record without a pod")));
}

TEST_F(OraclesTest, AWorkerThatItsNodeSetLeftBehindIsWaitedForOnceItGoes) {
  world.remove(slinky::resources::kNodeSet, "cpu", "Orphan");
  ASSERT_THAT(world.settle(core::Duration{180000}), IsEmpty()) << "it may stay";
  ASSERT_EQ(world.find(slinky::resources::kNodeSet, "cpu"), nullptr);
  world.remove(kinds::kPod, "cpu-0");
  EXPECT_THAT(world.oracles().unmet(), testing::Contains("pod default/cpu-0 is on its way out"));
  EXPECT_THAT(world.settle(core::Duration{180000}), IsEmpty());
  EXPECT_EQ(world.find(kinds::kPod, "cpu-0"), nullptr);
}

}  // namespace
}  // namespace sim
