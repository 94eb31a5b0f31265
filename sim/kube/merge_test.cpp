#include "sim/kube/merge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace sim {
namespace {

using core::Json;
using testing::ElementsAre;

Json j(const char* text) {
  return *core::parse_json(text);
}

TEST(Strategic, MergesListsByTheirKeys) {
  Json target = j(R"({"spec": {"containers": [{"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b"}],
                     "args": ["x"]}})");
  strategic_patch(target, j(R"({"spec": {"containers": [{"name": "a", "image": "2", "env": [{"name": "Y", "value": "2"}]},
                     {"name": "b", "$patch": "delete"}], "args": ["y"], "$setElementOrder/containers": [{"name": "a"}]}})"));
  EXPECT_EQ(
      target,
      j(R"({"spec": {"containers": [{"name": "a", "image": "2", "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}]}],
                     "args": ["y"]}})"))
      << "what is new comes first";
}

TEST(Strategic, FinalizersAreASet) {
  Json target = j(R"({"metadata": {"finalizers": ["a", "b"]}})");
  strategic_patch(target, j(R"({"metadata": {"finalizers": ["b", "c"], "$deleteFromPrimitiveList/finalizers": ["a"]}})"));
  EXPECT_EQ(target, j(R"({"metadata": {"finalizers": ["b", "c"]}})"));
}

TEST(JsonPatch, AFailedTestIsAConflict) {
  const auto failed = json_patch(j(R"({"a": 1})"), j(R"([{"op": "test", "path": "/a", "value": 2}])"));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, core::ErrorCode::kConflict);
  const auto missing = json_patch(j(R"({"a": 1})"), j(R"([{"op": "remove", "path": "/b"}])"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, core::ErrorCode::kInvalid);
}

TEST(Fields, NameLeavesAndItems) {
  const FieldSet fields = fields_of(j(R"({"kind": "Pod", "metadata": {"name": "n", "uid": "u", "labels": {"a": "b"}},
      "spec": {"containers": [{"name": "c", "args": ["1", "2"]}], "nodeSelector": {"x": "y"}, "dnsConfig": {}}})"),
                                    false);
  EXPECT_THAT(fields,
              ElementsAre(FieldPath{"f:metadata", "f:labels", "f:a"}, FieldPath{"f:spec", "f:containers", R"(k:{"name":"c"})"},
                          FieldPath{"f:spec", "f:containers", R"(k:{"name":"c"})", "f:args"},
                          FieldPath{"f:spec", "f:containers", R"(k:{"name":"c"})", "f:name"},
                          FieldPath{"f:spec", "f:dnsConfig"}, FieldPath{"f:spec", "f:nodeSelector"}));
  EXPECT_EQ(fields_v1(fields)["f:spec"]["f:containers"], j(R"({"k:{\"name\":\"c\"}": {".": {}, "f:args": {}, "f:name": {}}})"));
}

/// A live object that `manager` applied.
struct Applied {
  Json object = Json::object();
  FieldOwners owners;
  std::vector<std::string> conflicts;
  void apply(const char* manager, const char* config, bool force = true) {
    ApplyResult result = apply_config(object, owners, j(config), manager, force, false);
    conflicts.clear();
    for (const ApplyConflict& conflict : result.conflicts) conflicts.push_back(conflict.owner + conflict.path);
    if (!conflicts.empty()) return;
    object = std::move(result.object);
    owners = std::move(result.owners);
  }
};

TEST(Apply, WhatIsNoLongerAppliedGoes) {
  Applied a;
  a.apply(
      "Apply m",
      R"({"metadata": {"labels": {"x": "1", "y": "2"}}, "spec": {"containers": [{"name": "a", "image": "i"}, {"name": "b"}]}})");
  a.apply("Apply m", R"({"metadata": {"labels": {"x": "1"}}, "spec": {"containers": [{"name": "a"}]}})");
  EXPECT_EQ(a.object, j(R"({"metadata": {"labels": {"x": "1"}}, "spec": {"containers": [{"name": "a"}]}})"));
}

TEST(Apply, WhatOthersOwnStays) {
  Applied a;
  a.apply("Apply m", R"({"metadata": {"labels": {"x": "1"}}, "spec": {"containers": [{"name": "a", "image": "i"}]}})");
  a.apply("Apply n",
          R"({"metadata": {"labels": {"x": "1", "z": "3"}}, "spec": {"containers": [{"name": "s", "image": "side"}]}})");
  a.apply("Apply m", R"({"spec": {"containers": [{"name": "a", "image": "i"}]}})");
  EXPECT_EQ(a.object, j(R"({"metadata": {"labels": {"x": "1", "z": "3"}},
                           "spec": {"containers": [{"name": "a", "image": "i"}, {"name": "s", "image": "side"}]}})"));
}

TEST(Apply, ConflictsUnlessForced) {
  Applied a;
  a.apply("Apply m", R"({"spec": {"replicas": 1}})");
  a.apply("Apply n", R"({"spec": {"replicas": 2}})", false);
  EXPECT_THAT(a.conflicts, ElementsAre("Apply m.spec.replicas"));
  a.apply("Apply n", R"({"spec": {"replicas": 1}})", false);
  EXPECT_THAT(a.conflicts, ElementsAre()) << "the same value is no conflict";
  a.apply("Apply n", R"({"spec": {"replicas": 3}})");
  EXPECT_EQ(a.object["spec"]["replicas"], 3);
  EXPECT_FALSE(a.owners.contains("Apply m")) << "it lost its only field";
}

TEST(Apply, AnUpdateTakesFieldsOver) {
  Applied a;
  a.apply("Apply m", R"({"spec": {"replicas": 1, "x": "1"}})");
  const Json scaled = j(R"({"spec": {"replicas": 5, "x": "1"}})");
  a.owners = own_changes(a.object, scaled, a.owners, "Update user", false);
  a.object = scaled;
  a.apply("Apply m", R"({"spec": {"x": "1"}})");
  EXPECT_EQ(a.object["spec"]["replicas"], 5) << "it is the user's now";
}

TEST(Apply, CustomResourcesHaveAtomicLists) {
  const Json live = j(R"({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}})");
  const ApplyResult result = apply_config(live, {}, j(R"({"spec": {"containers": [{"name": "c"}]}})"), "Apply m", true, true);
  EXPECT_EQ(result.object, j(R"({"spec": {"containers": [{"name": "c"}]}})"));
}

RC_GTEST_PROP(Apply, IsIdempotentAndContained, ()) {
  // Makes small documents with few names, so that they overlap.
  const auto document = [] {
    Json out = Json::object();
    for (const std::string name : {"a", "b", "c"}) {
      if (*rc::gen::inRange(0, 2) == 1) out["metadata"]["labels"][name] = std::to_string(*rc::gen::inRange(0, 3));
      if (*rc::gen::inRange(0, 2) == 1) {
        Json item{{"name", name}};
        if (*rc::gen::inRange(0, 2) == 1) item["image"] = std::to_string(*rc::gen::inRange(0, 3));
        out["spec"]["containers"].push_back(std::move(item));
      }
    }
    return out;
  };
  Json live = Json::object();
  FieldOwners owners;
  for (int i = *rc::gen::inRange(1, 6); i > 0; --i) {
    const std::string manager = *rc::gen::element<std::string>("Apply m", "Apply n");
    const Json config = document();
    ApplyResult once = apply_config(live, owners, config, manager, true, false);
    RC_ASSERT(once.conflicts.empty());
    RC_ASSERT(core::contains(once.object, config));
    const ApplyResult twice = apply_config(once.object, once.owners, config, manager, true, false);
    RC_ASSERT(twice.object == once.object);
    RC_ASSERT(twice.owners == once.owners);
    live = std::move(once.object);
    owners = std::move(once.owners);
  }
  // A manager that releases all its fields leaves nothing behind without an owner.
  for (const std::string manager : {"Apply m", "Apply n"}) {
    ApplyResult none = apply_config(live, owners, Json::object(), manager, true, false);
    live = std::move(none.object);
    owners = std::move(none.owners);
  }
  RC_ASSERT(fields_of(live, false).empty() || live.dump().find("name") == std::string::npos);
}

}  // namespace
}  // namespace sim
