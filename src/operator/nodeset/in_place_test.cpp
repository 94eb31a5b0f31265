#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/well_known.hpp"
#include "operator/nodeset/parts.hpp"
#include "operator/nodeset/plan.hpp"
#include "operator/nodeset/testing/world.hpp"

namespace op::nodeset::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::StartsWith;

/// Returns a world with a settled worker, just after the spec's extraConf has changed from `from` to `to`.
World changed(const char* from, const char* to) {
  World world(core::Json{{"replicas", 1}, {"extraConf", from}});
  world.settle();
  world.start_pods();
  world.settle();
  world.done.clear();
  world.edit("extraConf", to);
  world.settle();
  return world;
}

TEST(InPlace, WhatSlurmTakesWhileAWorkerRuns) {
  struct Case {
    const char *from, *to;
  };
  for (const Case& same : {Case{"", "Features=a"}, Case{"Features=a", ""}, Case{"Feature=a CPUs=2", "CPUs=2 Features=b,c"},
                           Case{"CPUs=2 Weight=3", "Weight=3 features=x CPUs=2"}, Case{"", "Weight=2"},
                           Case{"Features=a Weight=1", "Features=b Weight=2"}}) {
    World world = changed(same.from, same.to);
    EXPECT_THAT(world.done, Contains("update Pod default/cpu-0")) << same.to;
    EXPECT_THAT(world.done, Not(Contains(StartsWith("drain")))) << same.to;
  }
  for (const Case& other : {Case{"Weight=2", ""}, Case{"Features=a Weight=1", "Features=b"}, Case{"CPUs=2", "Features=a"},
                            Case{"Features=a Gres=gpu:1", "Features=a"}}) {
    World world = changed(other.from, other.to);
    EXPECT_THAT(world.done, Contains("delete Pod default/cpu-0")) << other.to;
    EXPECT_THAT(world.done, Not(Contains(StartsWith("update ")))) << other.to;
  }
}

TEST(InPlace, TheNodeSetsOwnFeatureStaysAndNoneIsNamedTwice) {
  World world = changed("", "Features=a,a,b");
  EXPECT_THAT(world.node("cpu-0").features, ElementsAre("cpu", "a", "b"));
}

TEST(InPlace, ThePodTellsBothOfItsTemplates) {
  World world = changed("", "Features=a");
  const kube::PodRecord& pod = world.pod("cpu-0");
  const std::string created(pod.meta.annotation(api::kAnnotationCreatedRevision));
  const std::string second(pod.meta.label(api::kLabelRevisionHash));
  EXPECT_NE(created, second);
  world.edit("extraConf", "Features=b");
  world.settle();
  EXPECT_EQ(world.pod("cpu-0").meta.annotation(api::kAnnotationCreatedRevision), created);
  EXPECT_NE(world.pod("cpu-0").meta.label(api::kLabelRevisionHash), second);
}

TEST(InPlace, SomebodyElsesCommentStays) {
  World world(core::Json{{"replicas", 1}});
  world.settle();
  world.start_pods();
  world.settle();
  world.node("cpu-0").comment = "rack 7";
  world.edit("extraConf", "Features=a");
  world.settle();
  EXPECT_EQ(world.node("cpu-0").comment, "rack 7");
  EXPECT_THAT(world.node("cpu-0").features, ElementsAre("cpu", "a"));
  EXPECT_EQ(world.status()["updatedReplicas"], 1);
}

TEST(InPlace, ARecordOfAnotherConfIsReplaced) {
  World world(core::Json{{"replicas", 1}});
  world.settle();
  world.start_pods();
  world.settle();
  // The worker's record belongs to a previous pod and could not be deleted.
  std::string& comment = world.node("cpu-0").comment;
  const std::size_t at = comment.find("extraConfHash\":\"");
  ASSERT_NE(at, std::string::npos) << comment;
  comment.replace(at + 16, 3, "zzz");
  world.done.clear();
  world.edit("extraConf", "Features=a");
  world.settle();
  EXPECT_THAT(world.done, Contains("delete Pod default/cpu-0"));
}

}  // namespace
}  // namespace op::nodeset::testing
