#include "sim/programs/operator/oracles/service.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/well_known.hpp"
#include "sim/programs/operator/world.hpp"
#include "slinky/names.hpp"

namespace sim {
namespace {

using core::Duration;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
namespace kinds = kube::resources;

/// A settled world with one worker and one token.
class ServiceOracleTest : public testing::Test {
 protected:
  void SetUp() override {
    world.found_cluster(1);
    core::Json token = token_json("alice", slinky::generated_jwt_key_name(World::kCluster), std::string(api::kKeyJwt));
    token["spec"]["lifetime"] = "2m";
    world.apply(token);
    ASSERT_THAT(world.settle(Duration{180000}), IsEmpty());
    service.expect(true);
  }
  [[nodiscard]] const std::vector<std::string>& violations() { return told; }

  OperatorWorld world;
  std::vector<std::string> told;
  ServiceOracle service{world.loop(), world.api(), world.site(), [this](std::string text) { told.push_back(std::move(text)); }};
};

TEST_F(ServiceOracleTest, NothingIsMissedWhileAllIsWell) {
  world.loop().run_for(std::chrono::minutes{10});
  EXPECT_THAT(violations(), IsEmpty());
  EXPECT_THAT(service.longest(), IsEmpty());
}

TEST_F(ServiceOracleTest, WithoutAnOperatorTokensExpire) {
  world.pause(0, std::chrono::hours{1});
  world.loop().run_for(std::chrono::minutes{3});
  EXPECT_THAT(violations(), Contains(HasSubstr("a token is expired for more than 4 s: default/alice")));
}

TEST_F(ServiceOracleTest, SlurmrestdIsAway) {
  world.pause(0, std::chrono::hours{1});
  world.remove(kinds::kService, slinky::restapi_object_name(World::kCluster));
  world.loop().run_for(Duration{80000});
  EXPECT_THAT(violations(), testing::Not(Contains(HasSubstr("slurmrestd"))));
  world.loop().run_for(Duration{20000});
  EXPECT_THAT(violations(), Contains(HasSubstr("slurmrestd is away for more than 90 s: default/demo")));
}

TEST_F(ServiceOracleTest, SlurmrestdIsAwayWithItsMachine) {
  std::string machine;
  for (const std::string& name : world.names(kinds::kPod)) {
    const core::Json& pod = *world.find(kinds::kPod, name);
    if (core::get_string(pod, {"metadata", "labels", api::kLabelName}) == slinky::kAppRestApi)
      machine = core::get_string(pod, {"spec", "nodeName"});
  }
  world.kube().nodes().crash_node(machine);
  world.loop().run_for(std::chrono::minutes{4});
  EXPECT_THAT(violations(), testing::Not(Contains(HasSubstr("slurmrestd")))) << "Kubernetes makes no other one yet";
  for (int i = 0; i < world.options().kube_nodes; ++i)
    world.merge(kinds::kNode, "kube-" + std::to_string(i), {{"spec", {{"unschedulable", true}}}});
  world.loop().run_for(std::chrono::minutes{4});
  EXPECT_THAT(violations(), Contains(HasSubstr("slurmrestd is away for more than 90 s: default/demo"))) << "nor does that come";
}

TEST_F(ServiceOracleTest, AnIdleWorkerThatTheOperatorHoldsBack) {
  world.pause(0, std::chrono::hours{1});
  SimNodeUpdate change;
  change.state = "DRAIN";
  change.reason = "slurm-operator: for a test";
  ASSERT_EQ(world.slurm()->update_node("cpu-0", change), SlurmErrno::kSuccess);
  world.loop().run_for(Duration{100000});
  EXPECT_THAT(violations(), Contains(HasSubstr("an idle worker is held back by the operator")));
}

TEST_F(ServiceOracleTest, WhereNoOperatorActsNoServiceIsDue) {
  service.limit_to({kOtherNamespace});
  world.pause(0, std::chrono::hours{1});
  world.remove(kinds::kService, slinky::restapi_object_name(World::kCluster));
  world.loop().run_for(std::chrono::minutes{5});
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(ServiceOracleTest, NobodyWaitsForWhatIsNotDue) {
  service.expect(false);
  world.pause(0, std::chrono::hours{1});
  world.loop().run_for(std::chrono::minutes{5});
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(ServiceOracleTest, RequestsHaveACeiling) {
  for (int i = 0; i < 5000; ++i) service.request(true);
  EXPECT_THAT(violations(), testing::ElementsAre(HasSubstr("requests to Slurm within a minute")));
}

}  // namespace
}  // namespace sim
