#include "sim/programs/operator/oracles/replicas.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/programs/operator/oracles/objects.hpp"
#include "sim/programs/operator/oracles/testing/oracles_test.hpp"
#include "slinky/names.hpp"

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
  world.merge(slinky::resources::kNodeSet, "cpu", {{"spec", {{"replicas", 3}}}});
  world.merge(slinky::resources::kNodeSet, "cpu", {{"spec", {{"replicas", 2}}}});
  one_more("cpu-2");
  EXPECT_THAT(violations(), IsEmpty());
  one_more("cpu-3");
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("worker default/cpu-3 makes 4 of its NodeSet, of which 3 at most")));
}

TEST_F(OraclesTest, NorForAMachineThatDidNotMatchLately) {
  const std::size_t machines = world.names(kinds::kNode).size();
  world.merge(slinky::resources::kNodeSet, "cpu", {{"spec", {{"scalingMode", "DaemonSet"}}}});
  ASSERT_THAT(world.settle(core::Duration{900000}), IsEmpty());
  Json pod;
  for (const std::string& name : world.workers()) {
    if (pinned_to(*world.find(kinds::kPod, name)) == "kube-0") pod = *world.find(kinds::kPod, name);
  }
  ASSERT_FALSE(pod.is_null());
  for (const char* drawn : {"uid", "resourceVersion"}) pod["metadata"].erase(drawn);
  const auto make = [&](const char* name) {
    pod["metadata"]["name"] = name;
    ASSERT_TRUE(world.api().create(kinds::kPod, pod));
  };
  world.pause(0, core::Duration{600000});
  // Only the mode has changed, not the number of wanted workers.
  world.merge(slinky::resources::kNodeSet, "cpu", {{"spec", {{"scalingMode", "StatefulSet"}, {"replicas", machines}}}});
  make("cpu-a");
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("cpu-a was made for machine kube-0, which has ")))
      << "but an operator may not have heard of the other mode";
  world.loop().run_for(core::Duration{120000});
  make("cpu-b");
  EXPECT_THAT(violations(), testing::Contains(HasSubstr("cpu-b was made for machine kube-0, which does not match")));
}

}  // namespace
}  // namespace sim
