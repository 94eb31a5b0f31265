#include "sim/programs/operator/oracles/writes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "sim/programs/operator/oracles/testing/oracles_test.hpp"
#include "sim/programs/operator/world.hpp"
#include "slinky/names.hpp"

namespace sim {
namespace {

using core::Json;
using testing::IsEmpty;

/// An operator for one namespace reads only that namespace. The caches of an operator for several namespaces contain all
/// namespaces.
TEST(NamespacesTest, OfOthersNothingIsWritten) {
  OperatorWorld world({}, {.namespaces = {World::kNamespace, "a third one"}});
  for (const char* ns : {World::kNamespace, kOtherNamespace}) {
    for (const Json& object : {controller_json(), restapi_json(), nodeset_json("cpu", 2)}) world.apply(object, ns);
  }
  world.start(world.program());
  EXPECT_THAT(world.settle(core::Duration{180000}), IsEmpty());
  EXPECT_THAT(world.oracles().violations(), IsEmpty());
  EXPECT_EQ(world.workers().size(), 2U);
  const Json* other = world.api().peek(slinky::resources::kController, {kOtherNamespace, World::kCluster});
  EXPECT_FALSE(other->contains("status"));
}

TEST_F(OraclesTest, AWarningThatStillHoldsIsToldAgainAfterTenMinutesAtTheEarliest) {
  const auto tell = [&](const char* kind, const char* type) {
    const Json event{{"regarding", {{"kind", kind}, {"uid", "u"}}}, {"type", type}, {"reason", "Odd"}, {"note", "it is odd"}};
    const std::uint64_t before = world.judges().reminders();
    world.judges().request(
        {.method = "POST", .target = "/apis/events.k8s.io/v1/namespaces/default/events?fieldManager=x", .body = event.dump()},
        false, "");
    return world.judges().reminders() - before;
  };
  EXPECT_EQ(tell("NodeSet", "Warning"), 0U);
  world.loop().run_for(std::chrono::minutes{9});
  EXPECT_EQ(tell("NodeSet", "Warning"), 0U) << "too early";
  EXPECT_EQ(tell("NodeSet", "Normal") + tell("Controller", "Warning"), 0U);
  world.loop().run_for(std::chrono::minutes{10});
  EXPECT_EQ(tell("NodeSet", "Normal") + tell("Controller", "Warning"), 0U) << "these are not told again";
  EXPECT_EQ(tell("NodeSet", "Warning"), 1U);
}

}  // namespace
}  // namespace sim
