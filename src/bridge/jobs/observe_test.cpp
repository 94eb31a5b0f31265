#include "bridge/jobs/observe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bridge/jobs/testing/world.hpp"

namespace bridge::jobs {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Json;
using ::testing::StartsWith;
using testing::World;

kube::StringMap settings_of_job(const std::map<std::string, std::string>& values) {
  kube::StringMap out{{"example.com/account", "other"}};
  for (const auto& [name, value] : values) out.emplace(std::string(kAnnotationPrefix) + name, value);
  return out;
}
Json annotated(const kube::StringMap& annotations) {
  return {{"metadata", {{"annotations", annotations}}}};
}

// --- What the Namespace says ------------------------------------------------------------------------------------------------

TEST(JobsObserve, TheNamespaceHasDefaults) {
  World world;
  world.namespace_annotations = settings_of_job({{"account", "physics"}, {"qos", "low"}, {"user-id", "alice"}});
  world.waiting_pod(annotated(settings_of_job({{"qos", "high"}})));
  const Json wish = world.act("submit").at("wish");
  EXPECT_EQ(wish.at("account"), "physics");
  EXPECT_EQ(wish.at("qos"), "high") << "the pod's own comes first";
  EXPECT_EQ(wish.at("user_id"), "alice") << "users do not write it, so it is trusted";
}

TEST(JobsObserve, APodDoesNotReplaceTheUserOfItsNamespace) {
  World world;
  world.namespace_annotations = settings_of_job({{"user-id", "alice"}});
  world.waiting_pod(annotated(settings_of_job({{"user-id", "root"}})));
  EXPECT_THAT(world.act("report").dump(), HasSubstr("without --trust-identities"));
  EXPECT_TRUE(world.act("submit").is_null());
}

TEST(JobsObserve, AWrongDefaultIsTold) {
  struct Case {
    const char *name, *value, *told;
  };
  for (const auto& [name, value, told] : {
           Case{"timelimit", "soon", "namespace ns: annotation slurmjob.slinky.slurm.net/timelimit"},
           Case{"gang", "true", "must be absent, because it counts on pods only"},
       }) {
    SCOPED_TRACE(name);
    World world;
    world.namespace_annotations = settings_of_job({{name, value}});
    world.waiting_pod();
    EXPECT_THAT(world.act("report").dump(), HasSubstr(told));
    EXPECT_TRUE(world.act("submit").is_null());
  }
}

TEST(JobsObserve, NothingIsSubmittedBeforeTheNamespaceIsKnown) {
  World world;
  world.namespaces_known = false;
  world.waiting_pod();
  EXPECT_THAT(world.steps(), IsEmpty());
  world.namespaces_known = true;
  EXPECT_THAT(world.steps(), Contains(StartsWith("submit Slurm job ns/p")));
}

// --- Which nodes fit --------------------------------------------------------------------------------------------------------

TEST(JobsObserve, ExcludedNodesFollowTheNodes) {
  World world;
  world.waiting_pod({{"spec", {{"nodeSelector", {{"zone", "x"}}}}}});
  const auto excluded = [&] { return world.act("submit").at("wish").at("excluded_nodes"); };
  world.node("node-1", {{"metadata", {{"labels", {{"zone", "x"}}}}}});
  EXPECT_EQ(excluded(), Json::array({"node-2"}));
  world.node("node-2", {{"metadata", {{"labels", {{"zone", "x"}}}}}});
  world.node("node-1");
  EXPECT_EQ(excluded(), Json::array({"node-1"})) << "labels have changed";
  world.slurm_node("node-3");
  EXPECT_EQ(excluded(), Json::array({"node-1", "node-3"})) << "Slurm has another node";
  world.slurm_node("node-1", {"other"});
  world.namespace_annotations = settings_of_job({{"partition", "batch"}});
  EXPECT_EQ(excluded(), Json::array({"node-3"})) << "a node is not in the partition";
}

// --- Which pods are managed -------------------------------------------------------------------------------------------------

TEST(JobsObserve, APodElsewhereIsManagedIfAdmissionHasSaidSo) {
  World world;
  world.settings.managed_namespaces = {"other"};
  world.settings.scheduler_name = "slurm-bridge-scheduler";
  world.waiting_pod(annotated({{std::string(kAnnotationManagedBy), "slurm/other"}}));
  EXPECT_THAT(world.steps(), IsEmpty()) << "another bridge does";
  world.waiting_pod(annotated({{std::string(kAnnotationManagedBy), "slurm/demo"}}));
  EXPECT_THAT(world.steps(), Contains(StartsWith("submit Slurm job ns/p")));
}

TEST(JobsObserve, WithoutASchedulerNameNoPodElsewhereIsManaged) {
  World world;
  world.settings.managed_namespaces = {"other"};
  world.waiting_pod(annotated({{std::string(kAnnotationManagedBy), "slurm/demo"}}));
  EXPECT_THAT(world.steps(), IsEmpty());
}

}  // namespace
}  // namespace bridge::jobs
