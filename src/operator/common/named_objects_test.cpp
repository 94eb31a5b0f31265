#include "operator/common/named_objects.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "kube/cache/record.hpp"

namespace op {
namespace {

using core::Json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Json j(const char* text) {
  return *core::parse_json(text);
}

class Reader final : public kube::Recorder {
 public:
  kube::Named<kube::SecretRecord> secret(const kube::Key& key) override { return read<kube::SecretRecord>("Secret", key); }
  kube::Named<kube::Object> object(const kube::Resource& resource, const kube::Key& key) override {
    return read<kube::Object>(resource.kind, key);
  }
  kube::Named<kube::MetadataRecord> metadata(const kube::Resource&, const kube::Key&) override { return {}; }

  std::map<std::string, Json> data;  ///< The existing objects, by "Secret ns/name".
  bool synced = true;

 private:
  template <class Record>
  kube::Named<Record> read(const std::string& kind, const kube::Key& key) {
    if (!synced) return {};
    const auto it = data.find(kind + " " + key.str());
    if (it == data.end()) return {kube::Presence::kAbsent, nullptr};
    Json object{{"metadata", {{"namespace", key.ns}, {"name", key.name}, {"uid", "u"}}}, {"data", it->second}};
    return {kube::Presence::kPresent, kube::record_from_json<Record>(object).value()};
  }
};

struct NamedObjects : ::testing::Test {
  Reader reader;

  std::vector<std::string> missing(const Json& pod_spec, const Json& container = Json::object()) {
    api::PodTemplate pod_template;
    pod_template.spec = pod_spec;
    std::vector<std::string> out;
    for (const Problem& problem : missing_objects(reader, "ns", pod_template, {{"spec.slurmd", container}})) {
      EXPECT_TRUE(problem.wrong());
      out.push_back(problem.reason + " " + problem.message);
    }
    return out;
  }
};

TEST_F(NamedObjects, AreToldWithTheFieldThatNamesThem) {
  EXPECT_THAT(
      missing(j(R"({"volumes": [
      {"name": "a", "emptyDir": {}},
      {"name": "b", "secret": {"secretName": "s1"}},
      {"name": "c", "configMap": {"name": "m1"}},
      {"name": "d", "projected": {"sources": [{"downwardAPI": {}}, {"secret": {"name": "s2"}}, {"configMap": {"name": "m2"}}]}}],
      "initContainers": [{"envFrom": [{"configMapRef": {"name": "m3"}}]}],
      "containers": [{"env": [{"name": "A", "value": "b"}, {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "m4", "key": "k"}}}]}]})"),
              j(R"({"envFrom": [{"secretRef": {"name": "s3"}}],
      "env": [{"name": "C", "valueFrom": {"secretKeyRef": {"name": "s4", "key": "k"}}}]})")),
      ElementsAre("SecretMissing spec.slurmd.envFrom[0].secretRef.name: Secret ns/s3 does not exist",
                  "SecretMissing spec.slurmd.env[0].valueFrom.secretKeyRef.name: Secret ns/s4 does not exist",
                  "SecretMissing spec.template.spec.volumes[1].secret.secretName: Secret ns/s1 does not exist",
                  "ConfigMapMissing spec.template.spec.volumes[2].configMap.name: ConfigMap ns/m1 does not exist",
                  "SecretMissing spec.template.spec.volumes[3].projected.sources[1].secret.name: Secret ns/s2 does not exist",
                  "ConfigMapMissing spec.template.spec.volumes[3].projected.sources[2].configMap.name: ConfigMap ns/m2 does "
                  "not exist",
                  "ConfigMapMissing spec.template.spec.initContainers[0].envFrom[0].configMapRef.name: ConfigMap ns/m3 does "
                  "not exist",
                  "ConfigMapMissing spec.template.spec.containers[0].env[1].valueFrom.configMapKeyRef.name: ConfigMap ns/m4 "
                  "does not exist"));
}

TEST_F(NamedObjects, MendThemselves) {
  const Json spec = j(R"({"volumes": [{"secret": {"secretName": "s"}}, {"configMap": {"name": "m"}}]})");
  EXPECT_EQ(missing(spec).size(), 2U);
  reader.data = {{"Secret ns/s", Json::object()}, {"ConfigMap ns/m", Json::object()}};
  EXPECT_THAT(missing(spec), IsEmpty());
}

TEST_F(NamedObjects, KeysAreLookedForInThem) {
  reader.data = {{"Secret ns/s", j(R"({"good": "YQ=="})")}, {"ConfigMap ns/m", j(R"({"good": "a"})")}};
  EXPECT_THAT(
      missing(j(R"({"volumes": [{"secret": {"secretName": "s", "items": [{"key": "good"}, {"key": "bad"}]}}]})"),
              j(R"({"env": [{"valueFrom": {"configMapKeyRef": {"name": "m", "key": "good"}}},
                                    {"valueFrom": {"configMapKeyRef": {"name": "m", "key": "bad"}}}]})")),
      ElementsAre(
          "ConfigMapKeyMissing spec.slurmd.env[1].valueFrom.configMapKeyRef.key: ConfigMap ns/m has no data under the key bad",
          "SecretKeyMissing spec.template.spec.volumes[0].secret.items[1].key: Secret ns/s has no data under the key bad"));
}

TEST_F(NamedObjects, OptionalOnesMayBeMissing) {
  EXPECT_THAT(missing(j(R"({"volumes": [{"secret": {"secretName": "s", "optional": true}},
                                        {"projected": {"sources": [{"configMap": {"name": "m", "optional": true}}]}}]})"),
                      j(R"({"envFrom": [{"secretRef": {"name": "s", "optional": true}}]})")),
              IsEmpty());
}

TEST_F(NamedObjects, EachIsToldOnce) {
  EXPECT_EQ(missing(j(R"({"volumes": [{"secret": {"secretName": "s"}}, {"secret": {"secretName": "s"}}]})")).size(), 1U);
}

TEST_F(NamedObjects, WhatIsNotKnownYetIsNotMissing) {
  reader.synced = false;
  EXPECT_THAT(missing(j(R"({"volumes": [{"secret": {"secretName": "s"}}]})")), IsEmpty());
}

TEST_F(NamedObjects, WhatIsNoListIsTheApiServersToRefuse) {
  EXPECT_THAT(
      missing(j(R"({"volumes": {"secret": {"secretName": "s"}}, "containers": [null, "a", {"env": 1, "envFrom": [7]}]})"), 5),
      IsEmpty());
}

}  // namespace
}  // namespace op
