#include "kube/apply_helper.hpp"

#include <gtest/gtest.h>

#include "kube/cache/record.hpp"
#include "kube/testing/fake_transport.hpp"

namespace kube {
namespace {

using core::Json;

Object observed(Json more) {
  return **record_from_json<Object>(object_json("ns", "o", "7", "u", std::move(more)));
}

TEST(ApplyTest, AppliesOnlyADifference) {
  const Json desired = {{"metadata", {{"namespace", "ns"}, {"name", "o"}}}, {"spec", {{"replicas", 3}}}};
  const auto first = std::dynamic_pointer_cast<const Apply>(apply_if_different(resources::kStatefulSet, desired, nullptr, "m"));
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->unseen);
  const std::string hash = first->object["metadata"]["annotations"][std::string(kIntentHash)];
  EXPECT_EQ(hash, intent_hash(desired));
  // The server has added defaults, and the object still contains our unchanged intent.
  Json stored = first->object;
  stored["spec"]["podManagementPolicy"] = "Parallel";
  const Object same = observed(stored);
  EXPECT_EQ(apply_if_different(resources::kStatefulSet, desired, &same, "m"), nullptr);
  // Somebody changed one of our fields.
  stored["spec"]["replicas"] = 5;
  const Object meddled = observed(stored);
  const auto again =
      std::dynamic_pointer_cast<const Apply>(apply_if_different(resources::kStatefulSet, desired, &meddled, "m"));
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->unseen);
  // The intent has changed, or has become smaller (the stored object still contains the smaller one).
  Json less = desired;
  less["spec"] = Json::object();
  EXPECT_NE(apply_if_different(resources::kStatefulSet, less, &same, "m"), nullptr);
}

TEST(ApplyTest, ASelectorIsTheWholeOfIt) {
  const Json desired = {{"metadata", {{"namespace", "ns"}, {"name", "o"}}}, {"spec", {{"selector", {{"app", "a"}}}}}};
  Json stored = std::dynamic_pointer_cast<const Apply>(apply_if_different(resources::kService, desired, nullptr, "m"))->object;
  const Object same = observed(stored);
  EXPECT_EQ(apply_if_different(resources::kService, desired, &same, "m"), nullptr);
  stored["spec"]["selector"]["added"] = "by somebody";
  const Object narrower = observed(stored);
  EXPECT_NE(apply_if_different(resources::kService, desired, &narrower, "m"), nullptr);
}

TEST(ApplyTest, ZerosAreAppliedOnceThoughTheServerHasADefault) {
  const auto container = [](const char* policy) {
    return Json{{"name", "c"}, {"imagePullPolicy", policy}, {"env", {{{"name", "A"}, {"value", ""}}}}};
  };
  const auto set_of = [&](const char* policy) {
    return Json{{"metadata", {{"namespace", "ns"}, {"name", "o"}}},
                {"spec", {{"template", {{"spec", {{"containers", {container(policy)}}}}}}}}};
  };
  const auto stored_by = [](const Json& intent) {
    const auto act = std::dynamic_pointer_cast<const Apply>(apply_if_different(resources::kStatefulSet, intent, nullptr, "m"));
    return act->object;
  };
  Json stored = stored_by(set_of(""));
  Json& there = stored["spec"]["template"]["spec"]["containers"][0];
  there["imagePullPolicy"] = "IfNotPresent";
  const Object defaulted = observed(stored);
  EXPECT_EQ(apply_if_different(resources::kStatefulSet, set_of(""), &defaulted, "m"), nullptr);
  const Object before = observed(stored_by(set_of("Never")));
  EXPECT_NE(apply_if_different(resources::kStatefulSet, set_of(""), &before, "m"), nullptr) << "the intent is another";
  there["env"][0]["value"] = "x";
  const Object meddled = observed(stored);
  EXPECT_NE(apply_if_different(resources::kStatefulSet, set_of(""), &meddled, "m"), nullptr) << "somebody set one";
}

TEST(ApplyTest, ZerosAreAppliedOnceThoughTheServerDropsThem) {
  const Json plain = {{"metadata", {{"namespace", "ns"}, {"name", "o"}}}, {"spec", {{"template", {{"spec", {{"a", "b"}}}}}}}};
  Json desired = plain;
  desired["spec"]["template"]["spec"].update({{"hostNetwork", false}, {"priorityClassName", ""}});
  desired["spec"]["template"]["spec"]["automountServiceAccountToken"] = false;
  const auto stored_by = [](const Json& intent) {
    const auto act = std::dynamic_pointer_cast<const Apply>(apply_if_different(resources::kStatefulSet, intent, nullptr, "m"));
    Json stored = act->object;
    for (const char* dropped : {"hostNetwork", "priorityClassName"}) stored["spec"]["template"]["spec"].erase(dropped);
    return stored;
  };
  Json stored = stored_by(desired);
  const Object same = observed(stored);
  EXPECT_EQ(apply_if_different(resources::kStatefulSet, desired, &same, "m"), nullptr);
  const Object before = observed(stored_by(plain));
  EXPECT_NE(apply_if_different(resources::kStatefulSet, desired, &before, "m"), nullptr) << "the intent is another";
  stored["spec"]["template"]["spec"]["hostNetwork"] = true;
  const Object meddled = observed(stored);
  EXPECT_NE(apply_if_different(resources::kStatefulSet, desired, &meddled, "m"), nullptr) << "somebody set one";
  stored = stored_by(desired);
  stored["spec"]["template"]["spec"].erase("automountServiceAccountToken");
  const Object taken = observed(stored);
  EXPECT_NE(apply_if_different(resources::kStatefulSet, desired, &taken, "m"), nullptr) << "absent is true";
}

}  // namespace
}  // namespace kube
