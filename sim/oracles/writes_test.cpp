#include "sim/oracles/writes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/names.hpp"
#include "sim/histories/world.hpp"

namespace sim {
namespace {

using core::Json;
using testing::IsEmpty;

/// With one namespace only that is read; of several, caches know all.
TEST(NamespacesTest, OfOthersNothingIsWritten) {
  World world({.namespaces = {World::kNamespace, "a third one"}});
  for (const char* ns : {World::kNamespace, World::kOtherNamespace}) {
    for (const Json& object : {controller_json(), restapi_json(), nodeset_json("cpu", 2)}) world.apply(object, ns);
  }
  world.start_operators();
  EXPECT_THAT(world.settle(core::Duration{180000}), IsEmpty());
  EXPECT_THAT(world.oracles().violations(), IsEmpty());
  EXPECT_EQ(world.workers().size(), 2U);
  const Json* other = world.api().peek(op::resources::kController, {World::kOtherNamespace, World::kCluster});
  EXPECT_FALSE(other->contains("status"));
}

}  // namespace
}  // namespace sim
