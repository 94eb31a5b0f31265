#include "sim/oracles/replicas.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/names.hpp"
#include "sim/oracles/testing/oracles_test.hpp"

namespace sim {
namespace {

using core::Json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace kinds = kube::resources;

TEST_F(OraclesTest, NoMoreWorkersAreMadeThanWereWishedForLately) {
  const auto one_more = [&](const std::string& name) {
    Json pod = *world.find(kinds::kPod, "cpu-0");
    pod["metadata"]["name"] = name;
    for (const char* drawn : {"uid", "resourceVersion"}) pod["metadata"].erase(drawn);
    ASSERT_TRUE(world.api().create(kinds::kPod, pod));
  };
  world.merge(op::resources::kNodeSet, "cpu", {{"spec", {{"replicas", 3}}}});
  world.merge(op::resources::kNodeSet, "cpu", {{"spec", {{"replicas", 2}}}});
  one_more("cpu-2");
  EXPECT_THAT(violations(), IsEmpty());
  one_more("cpu-3");
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("worker default/cpu-3 makes 4 of its NodeSet, of which 3 at most")));
}

}  // namespace
}  // namespace sim
