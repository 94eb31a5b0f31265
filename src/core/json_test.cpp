#include "core/json.hpp"

#include <gtest/gtest.h>

#include <ctime>
#include <string>

namespace core {
namespace {

Json j(const char* text) {
  return *parse_json(text);
}

TEST(Json, ParseErrorNamesTheByte) {
  const auto bad = parse_json(R"({"a": 1,, "b": 2})");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, ErrorCode::kInvalid);
  EXPECT_NE(bad.error().message.find("byte 9"), std::string::npos) << bad.error().message;
  EXPECT_FALSE(parse_json(""));
}

TEST(Json, ToReadAKeyThatIsNotThereIsABugAndNoEnd) {
  const Json object{{"a", 1}};
  EXPECT_EQ(object["a"], 1);
  EXPECT_THROW(static_cast<void>(object["b"]), std::logic_error);
}

TEST(Json, FindsByPath) {
  const Json doc = j(R"({"a": {"b": {"s": "x", "n": 5, "t": true}}, "l": [1]})");
  EXPECT_EQ(get_string(doc, {"a", "b", "s"}), "x");
  EXPECT_EQ(get_int(doc, {"a", "b", "n"}), 5);
  EXPECT_TRUE(get_bool(doc, {"a", "b", "t"}));
  EXPECT_EQ(get_string(doc, {"a", "b", "n"}, "other"), "other");
  EXPECT_EQ(get_int(doc, {"a", "b", "s"}, 7), 7);
  EXPECT_EQ(find(doc, {"a", "c"}), nullptr);
  EXPECT_EQ(find(doc, {"l", "b"}), nullptr);
  EXPECT_EQ(find(doc, {}), &doc);
}

TEST(Json, ContainsAllowsDefaultsOnly) {
  const Json intent = j(R"({"spec": {"containers": [{"name": "b", "image": "i"}, {"name": "a", "args": ["x"]}]}})");
  EXPECT_TRUE(contains(j(R"({"spec": {"containers": [{"name": "a", "args": ["x"], "tty": false},
                            {"name": "b", "image": "i"}, {"name": "injected"}], "dnsPolicy": "Default"}, "kind": "P"})"),
                       intent));
  EXPECT_FALSE(contains(j(R"({"spec": {"containers": [{"name": "a", "args": ["x"]}, {"name": "b", "image": "j"}]}})"), intent));
  EXPECT_FALSE(contains(j(R"({"spec": {"containers": [{"name": "b", "image": "i"}]}})"), intent));
  EXPECT_FALSE(
      contains(j(R"({"spec": {"containers": [{"name": "a", "args": ["x", "y"]}, {"name": "b", "image": "i"}]}})"), intent));
  EXPECT_FALSE(contains(j(R"({"spec": {}})"), intent));
}

TEST(Json, WhatServersDropIsContained) {
  EXPECT_TRUE(contains(j(R"({"a": 1})"), j(R"({"a": 1, "labels": {}, "args": [], "x": null})")));
  EXPECT_FALSE(contains(j(R"({"a": 1})"), j(R"({"a": 1, "b": false})")));
  EXPECT_FALSE(contains(j(R"({"a": 1})"), j(R"({"a": 1, "b": {"c": 1}})")));
}

TEST(Json, ZerosThatServersDropAreContained) {
  const Json stored =
      j(R"({"spec": {"containers": [{"name": "c", "env": [{"name": "A"}], "ports": [{"containerPort": 1}]}]}})");
  EXPECT_TRUE(contains(stored, j(R"({"spec": {"hostNetwork": false, "priorityClassName": "", "containers": [
      {"name": "c", "tty": false, "env": [{"name": "A", "value": ""}], "ports": [{"containerPort": 1, "hostPort": 0}]}]}})")));
  for (const char* not_zero : {"true", "\"x\"", "1"}) {
    EXPECT_FALSE(contains(stored, {{"spec", {{"a", j(not_zero)}}}})) << not_zero;
    EXPECT_FALSE(contains({{"spec", {{"a", j(not_zero)}}}}, j(R"({"spec": {"a": false}})"))) << not_zero;
    EXPECT_FALSE(contains({{"spec", {{"a", j(not_zero)}}}}, j(R"({"spec": {"a": ""}})"))) << not_zero;
    EXPECT_FALSE(contains({{"spec", {{"a", j(not_zero)}}}}, j(R"({"spec": {"a": 0}})"))) << not_zero;
  }
  for (const char* kept :
       {R"({"spec": {"automountServiceAccountToken": false}})", R"({"spec": {"enableServiceLinks": false}})",
        R"({"spec": {"replicas": 0}})", R"({"securityContext": {"runAsUser": 0}})",
        R"({"securityContext": {"allowPrivilegeEscalation": false}})", R"({"metadata": {"labels": {"a": ""}}})",
        R"({"spec": {"nodeSelector": {"a": ""}}})", R"({"data": {"slurm.conf": ""}})",
        R"({"resources": {"limits": {"gpu": 0}}})", R"({"immutable": false})"}) {
    EXPECT_FALSE(contains(j(R"({"spec": {}, "metadata": {"labels": {}}, "securityContext": {}, "data": {},
                               "resources": {"limits": {}}})"),
                          j(kept)))
        << kept;
  }
}

TEST(Json, ZerosThatServersReplaceByTheirDefaultAreContained) {
  const Json stored =
      j(R"({"spec": {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler",
      "type": "ClusterIP", "clusterIP": "10.0.0.1", "sessionAffinity": "None", "containers": [{"name": "c",
      "imagePullPolicy": "Always", "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
      "ports": [{"containerPort": 1, "protocol": "TCP", "targetPort": 1, "nodePort": 30000}],
      "env": [{"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "f"}}}],
      "readinessProbe": {"httpGet": {"path": "/", "scheme": "HTTP"}, "timeoutSeconds": 1, "periodSeconds": 10,
                         "successThreshold": 1, "failureThreshold": 3}}]}})");
  EXPECT_TRUE(contains(stored, j(R"({"spec": {"restartPolicy": "", "dnsPolicy": "", "schedulerName": "", "type": "",
      "clusterIP": "", "sessionAffinity": "", "containers": [{"name": "c", "imagePullPolicy": "", "terminationMessagePath": "",
      "terminationMessagePolicy": "", "ports": [{"containerPort": 1, "protocol": "", "targetPort": 0, "nodePort": 0}],
      "env": [{"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "", "fieldPath": "f"}}}],
      "readinessProbe": {"httpGet": {"path": "", "scheme": ""}, "timeoutSeconds": 0, "periodSeconds": 0,
                         "successThreshold": 0, "failureThreshold": 0}}]}})")));
  EXPECT_FALSE(contains(stored, j(R"({"spec": {"containers": [{"name": "c", "imagePullPolicy": "Never"}]}})")));
  EXPECT_FALSE(contains(stored, j(R"({"spec": {"containers": [{"name": "c", "readinessProbe": {"periodSeconds": 1}}]}})")));
}

TEST(Json, AnEmptyTextThatServersKeepOrDropIsADifference) {
  for (const char* where :
       {R"({"metadata": {"labels": {"protocol": ""}}})", R"({"metadata": {"annotations": {"scheme": ""}}})",
        R"({"data": {"type": ""}})", R"({"data": {"protocol": ""}})", R"({"spec": {"selector": {"protocol": ""}}})",
        R"({"spec": {"nodeSelector": {"protocol": ""}}})", R"({"spec": {"storageClassName": ""}})",
        R"({"spec": {"priorityClassName": ""}})", R"({"spec": {"env": [{"name": "A", "value": ""}]}})",
        R"({"spec": {"volumeMounts": [{"mountPath": "/a", "subPath": ""}]}})", R"({"spec": {"args": ["-v", ""]}})",
        R"({"spec": {"apiGroups": [""]}})", R"({"spec": {"volumes": [{"name": "a", "hostPath": {"path": "/a", "type": ""}}]}})",
        R"({"spec": {"volumes": [{"name": "a", "hostPath": {"path": ""}}]}})",
        R"({"spec": {"dnsConfig": {"apiVersion": ""}}})"}) {
    const Json wanted = j(where);
    std::string text = where;
    text.replace(text.find(R"("")"), 2, R"("x")");
    EXPECT_FALSE(contains(j(text.c_str()), wanted)) << where;
    EXPECT_TRUE(contains(wanted, wanted)) << where;
  }
}

TEST(Json, QuantitiesCompareByValue) {
  const Json intent =
      j(R"({"resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}, "requests": {"cpu": "1000m"}}, "sizeLimit": "2048Ki"})");
  EXPECT_TRUE(contains(
      j(R"({"resources": {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "1"}}, "sizeLimit": "2Mi"})"),
      intent));
  EXPECT_FALSE(
      contains(j(R"({"resources": {"limits": {"cpu": "500m", "memory": "1G"}, "requests": {"cpu": "1"}}, "sizeLimit": "2Mi"})"),
               intent));
  EXPECT_FALSE(contains(j(R"({"image": "1000m"})"), j(R"({"image": "1"})")));
}

TEST(Json, DiffPathsNamesEveryDifference) {
  const Json a = j(R"({"spec": {"replicas": 1, "t": {"c": [{"image": "x"}, {"image": "y"}]}}, "same": [1]})");
  const Json b = j(R"({"spec": {"replicas": 2, "t": {"c": [{"image": "z"}]}, "new": 0}, "same": [1]})");
  EXPECT_EQ(diff_paths(a, b), (std::vector<std::string>{"spec.new", "spec.replicas", "spec.t.c[0].image", "spec.t.c[1]"}));
  EXPECT_TRUE(diff_paths(a, a).empty());
}

TEST(Json, MergeFollowsNames) {
  const Json base =
      j(R"({"c": [{"name": "a", "env": [{"name": "X", "value": "1"}], "volumeMounts": [{"mountPath": "/p", "name": "v"}],
                          "args": ["1", "2"]}], "gone": {"x": 1}, "keep": true})");
  const Json over = j(R"({"c": [{"name": "a", "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "3"}],
                          "volumeMounts": [{"mountPath": "/q", "name": "v"}, {"mountPath": "/p", "name": "w"}], "args": ["3"]},
                          {"name": "b"}], "gone": null})");
  EXPECT_EQ(merge(base, over), j(R"({"c": [{"name": "a", "env": [{"name": "X", "value": "3"}, {"name": "Y", "value": "2"}],
                 "volumeMounts": [{"mountPath": "/p", "name": "w"}, {"mountPath": "/q", "name": "v"}], "args": ["3"]},
                 {"name": "b"}], "keep": true})"));
}

// A list of tens of thousands of items must not stall a planning thread. In quadratic time this takes minutes.
TEST(Json, LongListsAreMergedAndComparedInOneGo) {
  Json base = Json::array();
  Json over = Json::array();
  for (int i = 0; i < 20'000; ++i) {
    base.push_back({{"name", "a" + std::to_string(i)}, {"value", "1"}});
    over.push_back({{"name", "a" + std::to_string(i + 10'000)}, {"value", "2"}});
  }
  const std::clock_t began = std::clock();
  const Json merged = merge({{"env", base}}, {{"env", over}});
  ASSERT_EQ(merged["env"].size(), 30'000U);
  EXPECT_EQ(merged["env"][0]["value"], "1");
  EXPECT_EQ(merged["env"][10'000]["value"], "2");
  EXPECT_TRUE(contains(merged, {{"env", over}}));
  EXPECT_FALSE(contains(merged, {{"env", base}}));
  EXPECT_LT((std::clock() - began) / CLOCKS_PER_SEC, 20) << "of the processor's time: whatever else runs here";
}

TEST(Json, UnsaidIsNullAndEmptyLists) {
  EXPECT_EQ(without_unsaid(j(R"({"a": null, "b": [], "c": {"d": null, "e": {}}, "f": [{"g": []}, null, []], "h": ""})")),
            j(R"({"c": {"e": {}}, "f": [{}, null, []], "h": ""})"));
  EXPECT_EQ(without_unsaid(j("[]")), j("[]"));
}

TEST(Json, MergeRemovesNullsInsideNewObjects) {
  EXPECT_EQ(merge(j("{}"), j(R"({"a": {"b": null, "c": 1}})")), j(R"({"a": {"c": 1}})"));
  EXPECT_EQ(merge(j(R"({"a": 5})"), j(R"({"a": {"c": 1}})")), j(R"({"a": {"c": 1}})"));
}

}  // namespace
}  // namespace core
