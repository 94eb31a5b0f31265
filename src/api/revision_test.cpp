#include "api/revision.hpp"

#include <gtest/gtest.h>

#include <set>

namespace api {
namespace {

using core::Json;

Json body_of(const char* spec) {
  Json body{{"metadata", {{"name", "cpu"}}}, {"spec", Json::parse(spec)}};
  body["spec"]["controllerRef"]["name"] = "demo";
  return body;
}

NodeSetSpec spec_of(const Json& body) {
  const core::Result<NodeSet> nodeset = from_json<NodeSet>(body);
  EXPECT_TRUE(nodeset) << nodeset.error().message;
  return nodeset ? nodeset->spec : NodeSetSpec{};
}

std::string hash_of(const char* spec) {
  return revision_hash(spec_of(body_of(spec)));
}

Json revision_of(const char* spec) {
  Json out = revision_data(spec_of(body_of(spec)));
  return {{"metadata", {{"name", "cpu-1"}}}, {"data", std::move(out)}};
}

constexpr const char* kFull =
    R"({"replicas": 3, "slurmd": {"image": "a", "resources": {"limits": {"cpu": 2}}}, "logfile": {"image": "b"},
        "extraConf": "Weight=2", "ordinalPadding": 3, "oversubscribeNode": true,
        "ssh": {"enabled": true, "extraSshdConfig": "x", "sssdConfRef": {"name": "s", "key": "sssd.conf"}},
        "template": {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
                     "spec": {"hostname": "n", "nodeSelector": {"e": "f"}}}})";

// The pods of running clusters have these values. If a release changed one of them, it would replace every worker of its
// users.
TEST(Revision, HashesNeverChange) {
  EXPECT_EQ(hash_of("{}"), "bsq65j278n");
  EXPECT_EQ(hash_of(R"({"slurmd": {"image": "local/slurmd:26.05"}})"), "shwzjq72bs");
  EXPECT_EQ(hash_of(kFull), "9vmgtzgnsn");
}

TEST(Revision, OnlyWhatMakesAWorkerCounts) {
  const std::string plain = hash_of("{}");
  for (const char* same :
       {R"({"replicas": 7})", R"({"revisionHistoryLimit": 2})", R"({"minReadySeconds": 5})",
        R"({"partition": {"enabled": true}})", R"({"workloadDisruptionProtection": false})", R"({"slurmd": {}})",
        R"({"ordinalPadding": 0, "oversubscribeNode": false, "extraConf": ""})", R"({"updateStrategy": {"type": "OnDelete"}})",
        R"({"template": {"metadata": {"labels": {"helm.sh/chart": "a", "app.kubernetes.io/version": "b"}}}})",
        R"({"ssh": {"enabled": false}})", R"({"ssh": {"enabled": false, "extraSshdConfig": "x"}})",
        R"({"template": {"metadata": {"labels": {"app.kubernetes.io/managed-by": "Helm",
                                                                    "app.kubernetes.io/part-of": "slurm"}}}})",
        R"({"template": {"spec": {"affinity": {}, "priorityClassName": "", "tolerations": [],
                                                     "imagePullSecrets": null}}, "slurmd": {"args": []}})"}) {
    EXPECT_EQ(hash_of(same), plain) << same;
  }
  EXPECT_EQ(hash_of(R"({"ssh": {"enabled": true, "sssdConfRef": {"name": "a", "key": "b", "optional": true}}})"),
            hash_of(R"({"ssh": {"enabled": true, "sssdConfRef": {"name": "a", "key": "b"}}})"))
      << "it is not acted on";
  std::set<std::string> all{plain};
  for (const char* other :
       {R"({"slurmd": {"image": "a"}})", R"({"logfile": {"image": "a"}})", R"({"extraConf": "Weight=1"})",
        R"({"ordinalPadding": 2})", R"({"oversubscribeNode": true})", R"({"template": {"metadata": {"labels": {"a": "b"}}}})",
        R"({"template": {"spec": {"hostname": "a"}}})",
        R"({"ssh": {"enabled": true, "sssdConfRef": {"name": "a", "key": "b"}}})",
        R"({"template": {"metadata": {"annotations": {"helm.sh/chart": "a"}}}})",
        R"({"template": {"spec": {"affinity": {"podAffinity": {"namespaceSelector": {}}}}}})",
        R"({"template": {"spec": {"affinity": {"podAffinity": {}}}}})"}) {
    EXPECT_TRUE(all.insert(hash_of(other)).second) << other;
  }
}

/// Returns a revision of an earlier release, which recorded the versions of charts.
Json recorded_before(std::int64_t number, const char* spec, const char* hash) {
  const Json body = body_of(spec);
  Json out = revision_of(spec);
  out["data"]["spec"]["template"] = body["spec"]["template"];
  out["revision"] = number;
  out["metadata"] = {{"name", std::string("cpu-") + hash}, {"labels", {{"controller-revision-hash", hash}}}};
  return out;
}

TEST(Revision, WhatAnEarlierReleaseRecordedStaysInForce) {
  const char* kOne = R"({"template": {"metadata": {"labels": {"a": "b", "helm.sh/chart": "1"}}}})";
  const char* kTwo = R"({"template": {"metadata": {"labels": {"a": "b", "helm.sh/chart": "2"}}}})";
  const char* kPlain = R"({"template": {"metadata": {"labels": {"a": "b"}}}})";
  const char* kOther = R"({"template": {"metadata": {"labels": {"a": "c", "helm.sh/chart": "2"}}}})";
  Json one = recorded_before(1, kOne, "one"), two = recorded_before(2, kTwo, "two");
  for (const char* now : {kOne, kTwo, kPlain}) {
    const NodeSetSpec spec = spec_of(body_of(now));
    EXPECT_EQ(hash_in_force(spec, {}), hash_of(kPlain)) << now;
    EXPECT_EQ(hash_in_force(spec, {&one}), "one") << now;
    EXPECT_EQ(hash_in_force(spec, {&one, &two}), "two") << "the newest: " << now;
    EXPECT_EQ(hash_in_force(spec, {&two, &one}), "two") << now;
    Json plain = recorded_before(1, kPlain, hash_of(kPlain).c_str());
    EXPECT_EQ(hash_in_force(spec, {&plain, &two}), "two") << now;
    plain["revision"] = 3;
    EXPECT_EQ(hash_in_force(spec, {&plain, &two}), hash_of(kPlain)) << now;
    EXPECT_EQ(*apply_revision(body_of(now), one), Json::object()) << now;
  }
  EXPECT_EQ(hash_in_force(spec_of(body_of(kOther)), {&one, &two}), hash_of(kOther));
  // One revision is unreadable, and the other belongs to another operator.
  two["metadata"]["name"] = "cpu-x";
  one["data"] = 7;
  EXPECT_EQ(hash_in_force(spec_of(body_of(kOne)), {&one, &two}), hash_of(kPlain));
}

TEST(Revision, WhatWasRecordedIsPutBack) {
  const char* kSpecs[] = {
      "{}",
      kFull,
      R"({"slurmd": {"image": "a", "env": [{"name": "X", "value": "1"}]}, "extraConf": "Features=x"})",
      R"({"slurmd": {"env": [{"name": "Y", "value": "2"}]}, "template": {"spec": {"nodeSelector": {"g": "h"}}}})",
      R"({"ssh": {"enabled": false, "sssdConfRef": {"name": "t", "key": "u"}}, "minReadySeconds": 9})",
      R"({"ssh": {"enabled": true, "extraSshdConfig": "y"}})",
  };
  for (const char* from : kSpecs) {
    for (const char* to : kSpecs) {
      Json nodeset = body_of(from);
      const core::Result<Json> patch = apply_revision(nodeset, revision_of(to));
      ASSERT_TRUE(patch) << patch.error().message;
      EXPECT_EQ(patch->empty(), hash_of(from) == hash_of(to)) << patch->dump();
      const NodeSetSpec before = spec_of(nodeset);
      nodeset.merge_patch(*patch);
      EXPECT_EQ(revision_hash(spec_of(nodeset)), hash_of(to)) << from << "\n" << to << "\n" << patch->dump();
      // Other fields stay.
      EXPECT_EQ(spec_of(nodeset).replicas, before.replicas);
      EXPECT_EQ(spec_of(nodeset).min_ready_seconds, before.min_ready_seconds);
    }
  }
}

TEST(Revision, AnSshdThatDidNotRunAndWasRecordedByAnEarlierReleaseIsNoneNow) {
  const char* kOff = R"({"template": {}, "ssh": {"enabled": false, "extraSshdConfig": "x"}})";
  Json recorded = recorded_before(1, kOff, "off");
  recorded["data"]["spec"]["ssh"] = body_of(kOff)["spec"]["ssh"];
  for (const char* now : {kOff, R"({"template": {}})"})
    EXPECT_EQ(hash_in_force(spec_of(body_of(now)), {&recorded}), "off") << now;
}

/// After a downgrade, the earlier release must not detect a changed template.
TEST(Revision, AnEarlierReleaseReadsAllOfAnSshdThatDoesNotRun) {
  for (const char* spec : {R"({"template": {}, "ssh": {"enabled": false, "extraSshdConfig": "x"}})",
                           R"({"template": {}, "ssh": {"enabled": true, "sssdConfRef": {"name": "t", "key": "u"}}})"}) {
    Json recorded = recorded_before(1, spec, hash_of(spec).c_str());
    recorded["data"] = recorded_data(spec_of(body_of(spec)));
    EXPECT_EQ(recorded["data"]["spec"]["ssh"], to_json(*spec_of(body_of(spec)).ssh));
    EXPECT_EQ(hash_in_force(spec_of(body_of(spec)), {&recorded}), hash_of(spec));
  }
  EXPECT_EQ(recorded_data(spec_of(body_of("{}"))), revision_data(spec_of(body_of("{}"))));
}

TEST(Revision, APatchNamesOnlyWhatDiffers) {
  const Json nodeset = body_of(R"({"slurmd": {"image": "new", "workingDir": "/"}, "extraConf": "Weight=2", "replicas": 3})");
  EXPECT_EQ(*apply_revision(nodeset, revision_of(R"({"slurmd": {"image": "old"}, "extraConf": "Weight=2"})")),
            Json::parse(R"({"spec": {"slurmd": {"image": "old", "workingDir": null}}})"));
  EXPECT_EQ(
      *apply_revision(nodeset, revision_of(R"({"slurmd": {"image": "new", "workingDir": "/"}, "extraConf": "Weight=2"})")),
      Json::object());
  EXPECT_EQ(
      *apply_revision(body_of(R"({"ssh": {"enabled": true, "sssdConfRef": {"name": "a", "key": "b"}}})"), revision_of("{}")),
      Json::parse(R"({"spec": {"ssh": null}})"));
}

TEST(Revision, WhatIsNoneIsRefused) {
  const Json nodeset = body_of("{}");
  for (const char* revision :
       {"{}", R"({"data": {}})", R"({"data": {"spec": 7}})", R"({"data": {"spec": {"extraConf": 7}}})"}) {
    const auto patch = apply_revision(nodeset, Json::parse(revision));
    ASSERT_FALSE(patch) << revision;
    EXPECT_EQ(patch.error().code, core::ErrorCode::kInvalid);
  }
  EXPECT_FALSE(apply_revision(Json::parse(R"({"spec": {"replicas": "x"}})"), revision_of("{}")));
}

}  // namespace
}  // namespace api
