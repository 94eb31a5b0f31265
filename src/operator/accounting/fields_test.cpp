#include "operator/testing/fields.hpp"

#include <gtest/gtest.h>

#include "operator/accounting/observe.hpp"

namespace op::accounting {
namespace {

using namespace op::testing;

const States kStates = states_of<AccountingController>("Accounting");
constexpr const char* kOfManaged[] = {"storageConfig.mariadb", "storageConfig.template", "storageConfig.persistence"};

TEST(Fields, EachOfAnAccountingHasAnEffectThatIsTakenBack) {
  const Json base = Json::parse(R"({
    "slurmKeyRef": {"name": "mine", "key": "k"}, "jwtKeyRef": {"name": "mine", "key": "k"},
    "jwtHs256KeyRef": {"name": "other", "key": "k"}, "jwksKeyRef": {"name": "demo-config", "key": "slurm.conf"},
    "slurmdbd": {"image": "x:26.05", "args": ["-v"], "env": [{"name": "A", "value": "1"}]},
    "template": {"metadata": {"labels": {"b": "c"}, "annotations": {"d": "e"}}, "spec": {"nodeSelector": {"f": "g"}}},
    "storageConfig": {"host": "db", "port": 3307, "database": "records", "username": "u",
                      "passwordKeyRef": {"name": "mine", "key": "k"}},
    "extraConf": "DebugLevel=debug\n",
    "service": {"metadata": {"labels": {"b": "c"}, "annotations": {"d": "e"}}, "spec": {"type": "NodePort"}, "port": 80,
                "nodePort": 30080}})");
  Findings wanted{{"externalConfig", "no effect"}};  // Tested with `external` below.
  // jwtKeyRef takes precedence over jwtHs256KeyRef.
  for (const char* field : {"", ".name", ".key"}) wanted[std::string("jwtHs256KeyRef") + field] = "no effect";
  for (const char* ref : {"slurmKeyRef", "jwtKeyRef", "jwtHs256KeyRef", "jwksKeyRef", "storageConfig.passwordKeyRef"})
    wanted[std::string(ref) + ".optional"] = "told";
  for (const char* field : kOfManaged) wanted[field] = "told";
  EXPECT_EQ(field_findings("Accounting", base, kStates), wanted);
}

TEST(Fields, TheOldNameOfAnAccountingsKeyHasTheSameEffect) {
  const Json base = Json::parse(R"({
    "slurmKeyRef": {"name": "mine", "key": "k"}, "jwtHs256KeyRef": {"name": "mine", "key": "k"},
    "storageConfig": {"host": "db", "passwordKeyRef": {"name": "mine", "key": "k"}}})");
  Findings wanted{{"externalConfig", "no effect"},
                  {"jwtHs256KeyRef.optional", "told"},
                  {"slurmKeyRef.optional", "told"},
                  {"storageConfig.passwordKeyRef.optional", "told"}};
  for (const char* field : kOfManaged) wanted[field] = "told";
  EXPECT_EQ(field_findings("Accounting", base, kStates), wanted);
}

TEST(Fields, EachOfAManagedDatabaseHasAnEffectThatIsTakenBack) {
  const Json base = Json::parse(R"({
    "slurmKeyRef": {"name": "mine", "key": "k"}, "jwtKeyRef": {"name": "mine", "key": "k"},
    "storageConfig": {"managed": true, "database": "records", "username": "u",
                      "mariadb": {"image": "x:11", "args": ["-v"], "env": [{"name": "A", "value": "1"}]},
                      "template": {"metadata": {"labels": {"b": "c"}, "annotations": {"d": "e"}},
                                   "spec": {"nodeSelector": {"f": "g"}}},
                      "persistence": {"storageClassName": "fast"}}})");
  const Findings wanted{{"externalConfig", "no effect"}, {"jwtHs256KeyRef", "told"},  // Reported because of `optional`.
                        {"jwtKeyRef.optional", "told"},  {"slurmKeyRef.optional", "told"},
                        {"storageConfig.host", "told"},  {"storageConfig.passwordKeyRef", "told"},
                        {"storageConfig.port", "told"}};
  // The claim is created only once, so its fields are compared between worlds: see scenario managed.
  EXPECT_EQ(field_findings("Accounting", base, kStates, {"storageConfig/persistence"}), wanted);
}

TEST(Fields, EachOfAnExternalAccountingHasAnEffectThatIsTakenBack) {
  const Json base = Json::parse(R"({"external": true, "externalConfig": {"host": "h.example.org", "port": 6900}})");
  Findings wanted;
  for (const char* field : {"slurmKeyRef", "jwtKeyRef", "jwtHs256KeyRef", "jwksKeyRef", "slurmdbd", "template", "storageConfig",
                            "extraConf", "service"})
    wanted[field] = "told";
  EXPECT_EQ(field_findings("Accounting", base, kStates), wanted);
}

}  // namespace
}  // namespace op::accounting
