#include "kube/conditions.hpp"

#include <gtest/gtest.h>

#include "kube/acts.hpp"
#include "kube/record.hpp"
#include "kube/testing/fake_transport.hpp"

namespace kube {
namespace {

using core::Json;

core::WallTime at(int seconds) {
  return {core::Duration{1767323045000LL + seconds * 1000LL}};
}

TEST(ConditionsTest, NothingChangesWhenItSaysTheSame) {
  Json conditions;
  EXPECT_TRUE(set_condition(conditions, {"Ready", "False", "Waiting", "for pods"}, 1, at(0)));
  const Json before = conditions;
  EXPECT_FALSE(set_condition(conditions, {"Ready", "False", "Waiting", "for pods"}, 1, at(60)));
  EXPECT_EQ(conditions, before);
}

TEST(ConditionsTest, TheTransitionTimeMovesOnlyWhenTheStatusFlips) {
  Json conditions;
  set_condition(conditions, {"Ready", "False", "Waiting", ""}, 1, at(0));
  EXPECT_TRUE(set_condition(conditions, {"Ready", "False", "Other", "x"}, 2, at(60)));
  EXPECT_EQ(conditions[0]["lastTransitionTime"], "2026-01-02T03:04:05Z");
  EXPECT_EQ(conditions[0]["observedGeneration"], 2);
  EXPECT_TRUE(set_condition(conditions, {"Ready", "True", "AllReady", ""}, 2, at(60)));
  EXPECT_EQ(conditions[0]["lastTransitionTime"], "2026-01-02T03:05:05Z");
  set_condition(conditions, {"Degraded", "False", "", ""}, 2, at(60));
  ASSERT_EQ(conditions.size(), 2U);
  EXPECT_EQ(conditions[1]["reason"], "Unknown") << "the API wants one";
  const Json object = {{"status", {{"conditions", conditions}}}};
  EXPECT_TRUE(condition_true(object, "Ready"));
  EXPECT_FALSE(condition_true(object, "Degraded"));
  EXPECT_FALSE(condition_true(Json::object(), "Ready"));
  EXPECT_EQ(find_condition(object, "None"), nullptr);
}

Object observed(Json more) {
  return **record_from_json<Object>(object_json("ns", "o", "7", "u", std::move(more)));
}

TEST(StatusPatchTest, WritesOnlyWhatDiffers) {
  const Object object =
      observed({{"status", {{"replicas", 3}, {"selector", "a=b"}, {"old", 1}, {"map", {{"x", 1}, {"y", 2}}}}}});
  EXPECT_EQ(patch_status_if_different(resources::kStatefulSet, object, {{"replicas", 3}, {"gone", nullptr}}), nullptr);
  const auto act = patch_status_if_different(resources::kStatefulSet, object,
                                             {{"replicas", 4}, {"selector", "a=b"}, {"old", nullptr}, {"map", {{"x", 5}}}});
  const auto patch = std::dynamic_pointer_cast<const Patch>(act);
  ASSERT_TRUE(patch);
  EXPECT_EQ(patch->patch, Json::parse(R"({"status":{"replicas":4,"old":null,"map":{"x":5,"y":null}}})"));
  EXPECT_EQ(patch->subresource, "status");
  EXPECT_EQ(patch->resource_version, "7");
  EXPECT_EQ(patch->uid, "u");
  EXPECT_NE(patch_status_if_different(resources::kStatefulSet, observed(Json::object()), {{"replicas", 0}}), nullptr)
      << "absent is not zero";
}

}  // namespace
}  // namespace kube
