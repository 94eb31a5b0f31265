#include "operator/nodeset/revision.hpp"

#include <gtest/gtest.h>

#include <set>

namespace op::nodeset {
namespace {

using core::Json;

std::string hash_of(const char* spec) {
  Json body{{"spec", Json::parse(spec)}};
  body["spec"]["controllerRef"]["name"] = "demo";
  const core::Result<api::NodeSet> nodeset = api::from_json<api::NodeSet>(body);
  EXPECT_TRUE(nodeset) << nodeset.error().message;
  return revision_hash(nodeset->spec);
}

// These values stand on the pods of running clusters. A release in which one of them changes replaces every worker of its
// users.
TEST(Revision, HashesNeverChange) {
  EXPECT_EQ(hash_of("{}"), "bsq65j278n");
  EXPECT_EQ(hash_of(R"({"slurmd": {"image": "local/slurmd:26.05"}})"), "shwzjq72bs");
  EXPECT_EQ(hash_of(R"({"replicas": 3, "slurmd": {"image": "a", "resources": {"limits": {"cpu": 2}}}, "logfile": {"image": "b"},
                       "extraConf": "Weight=2", "ordinalPadding": 3, "oversubscribeNode": true,
                       "ssh": {"enabled": true, "extraSshdConfig": "x", "sssdConfRef": {"name": "s", "key": "sssd.conf"}},
                       "template": {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
                                    "spec": {"hostname": "n", "nodeSelector": {"e": "f"}}}})"),
            "9vmgtzgnsn");
}

TEST(Revision, OnlyWhatMakesAWorkerCounts) {
  const std::string plain = hash_of("{}");
  for (const char* same : {R"({"replicas": 7})", R"({"revisionHistoryLimit": 2})", R"({"minReadySeconds": 5})",
                           R"({"partition": {"enabled": true}})", R"({"workloadDisruptionProtection": false})",
                           R"({"slurmd": {}})", R"({"ordinalPadding": 0, "oversubscribeNode": false, "extraConf": ""})",
                           R"({"updateStrategy": {"type": "OnDelete"}})"}) {
    EXPECT_EQ(hash_of(same), plain) << same;
  }
  std::set<std::string> all{plain};
  for (const char* other :
       {R"({"slurmd": {"image": "a"}})", R"({"logfile": {"image": "a"}})", R"({"extraConf": "Weight=1"})",
        R"({"ordinalPadding": 2})", R"({"oversubscribeNode": true})", R"({"template": {"metadata": {"labels": {"a": "b"}}}})",
        R"({"template": {"spec": {"hostname": "a"}}})",
        R"({"ssh": {"enabled": true, "sssdConfRef": {"name": "a", "key": "b"}}})"}) {
    EXPECT_TRUE(all.insert(hash_of(other)).second) << other;
  }
}

}  // namespace
}  // namespace op::nodeset
