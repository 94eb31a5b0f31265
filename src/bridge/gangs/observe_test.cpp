#include "bridge/gangs/observe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bridge/gangs/testing/world.hpp"

namespace bridge::gangs {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Json;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;
using testing::World;

const auto kSubmit = StartsWith("submit Slurm job ns/podgroup/train: g ");
const std::vector<std::string> kThree{"a", "b", "c"};

Json managed_by(const std::string& cluster) {
  return {{"metadata", {{"annotations", {{std::string(kAnnotationManagedBy), cluster}}}}}};
}
void three_wait(World& world, const Json& more = Json::object()) {
  for (const std::string& name : kThree) world.waits(name, more);
}

// --- What the Namespace says -------------------------------------------------------------------------------------------------

TEST(GangsObserve, TheNamespaceHasDefaults) {
  World world;
  world.namespace_annotations = {{std::string(kAnnotationPrefix) + "account", "physics"},
                                 {std::string(kAnnotationPrefix) + "user-id", "alice"}};
  three_wait(world);
  const Json wish = world.act("submit").at("wish");
  EXPECT_EQ(wish.at("account"), "physics");
  EXPECT_EQ(wish.at("user_id"), "alice");
}

TEST(GangsObserve, NothingIsSubmittedBeforeTheNamespaceIsKnown) {
  World world;
  world.namespaces_known = false;
  three_wait(world);
  EXPECT_THAT(world.steps(), IsEmpty());
  world.namespaces_known = true;
  EXPECT_THAT(world.steps(), ElementsAre(kSubmit));
}

// --- Which pods are managed --------------------------------------------------------------------------------------------------

TEST(GangsObserve, PodsElsewhereAreManagedIfAdmissionHasSaidSo) {
  World world;
  world.settings.managed_namespaces = {"other"};
  world.settings.scheduler_name = "slurm-bridge-scheduler";
  three_wait(world);
  EXPECT_THAT(world.steps(), IsEmpty());
  three_wait(world, managed_by("slurm/other"));
  EXPECT_THAT(world.steps(), IsEmpty()) << "another bridge does";
  three_wait(world, managed_by("slurm/demo"));
  EXPECT_THAT(world.steps(), ElementsAre(kSubmit));
}

/// Only managed pods count as pods of the group.
TEST(GangsObserve, APodThatIsNotManagedJoinsNoGroup) {
  World world;
  world.settings.managed_namespaces = {"other"};
  world.settings.scheduler_name = "slurm-bridge-scheduler";
  world.waits("a", managed_by("slurm/demo"));
  world.waits("b", managed_by("slurm/demo"));
  world.waits("c");
  EXPECT_THAT(world.told(),
              ElementsAre(Pair("a", HasSubstr("has 2 of the 3 pods")), Pair("b", HasSubstr("has 2 of the 3 pods"))));

  // Pod "d" of the job is gone.
  world.gang(7, "PENDING", {"a", "b", "d"});
  EXPECT_THAT(world.told(), Not(Contains(Key("c"))));
  EXPECT_THAT(world.steps(), Each(Not(HasSubstr("ns/c"))));
}

}  // namespace
}  // namespace bridge::gangs
