#include "sim/programs/operator/oracles/claims.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/programs/operator/oracles/testing/oracles_test.hpp"
#include "slinky/names.hpp"

namespace sim {
namespace {

using core::Duration;
using core::Json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace kinds = kube::resources;

/// A NodeSet, its worker, and the worker's claim. All three are deleted while the operator is paused.
class ClaimOracleTest : public OraclesTest {
 protected:
  void SetUp() override {
    OraclesTest::SetUp();
    Json nodeset = nodeset_json("big", 1);
    nodeset["spec"]["volumeClaimTemplates"] = Json::array({{{"metadata", {{"name", "scratch"}}},
                                                            {"spec",
                                                             {{"accessModes", {"ReadWriteOnce"}},
                                                              {"storageClassName", "standard"},
                                                              {"resources", {{"requests", {{"storage", "1Gi"}}}}}}}}});
    nodeset["spec"]["persistentVolumeClaimRetentionPolicy"] = {{"whenDeleted", "Delete"}};
    world.apply(nodeset);
    ASSERT_THAT(world.settle(Duration{180000}), IsEmpty());
    pod = *world.find(kinds::kPod, "big-0");
    for (const char* drawn : {"uid", "resourceVersion"}) pod["metadata"].erase(drawn);
    world.pause(0, std::chrono::hours{1});
    world.tear_away(slinky::resources::kNodeSet, "big");
    // An admission policy prevents the garbage collector from deleting the worker until the operator allows the deletion.
    world.remove(kinds::kPod, "big-0");
    const auto gone = [&] {
      return world.find(kinds::kPersistentVolumeClaim, "scratch-big-0") == nullptr &&
             world.find(kinds::kPod, "big-0") == nullptr;
    };
    ASSERT_TRUE(world.loop().run_until(gone, Duration{120000}));
    ASSERT_THAT(violations(), IsEmpty());
  }
  void make_worker() { ASSERT_TRUE(world.api().create(kinds::kPod, pod)); }

  Json pod;
};

TEST_F(ClaimOracleTest, WhoHasNotHeardOfItsEndMakesAWorkerAfterItsClaimHasGone) {
  make_worker();
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(ClaimOracleTest, ButNobodyTakesSoLongToHear) {
  world.loop().run_for(Duration{120000});
  make_worker();
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("worker default/big-0 is made before its claim scratch-big-0")));
}

TEST_F(ClaimOracleTest, NorIsItsClaimThatOfAnother) {
  pod["metadata"]["ownerReferences"][0]["uid"] = "another";
  make_worker();
  EXPECT_THAT(violations(), Contains(HasSubstr("worker default/big-0 is made before its claim scratch-big-0")));
}

}  // namespace
}  // namespace sim
