#include "api/field.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "api/common.hpp"
#include "api/controller.hpp"
#include "api/nodeset.hpp"
#include "api/token.hpp"

namespace api {
namespace {

using core::Json;
using std::chrono_literals::operator""h;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

NodeSet nodeset(Json spec) {
  spec["controllerRef"] = {{"name", "slurm"}};
  auto read = from_json<NodeSet>({{"spec", spec}});
  EXPECT_TRUE(read) << (read ? "" : read.error().message);
  return read ? *read : NodeSet{};
}

std::string problem(const Json& spec) {
  auto read = from_json<NodeSetSpec>(spec, "spec");
  return read ? "" : read.error().message;
}

TEST(Field, AbsentMembersHaveTheirDefaults) {
  const NodeSetSpec spec = nodeset(Json::object()).spec;
  EXPECT_EQ(spec.replicas, 1);
  EXPECT_EQ(spec.scaling_mode, ScalingMode::kStatefulSet);
  EXPECT_TRUE(spec.workload_disruption_protection);
  EXPECT_EQ(spec.update_strategy.rolling_update.max_unavailable, IntOrString{std::string("25%")});
  EXPECT_EQ(spec.update_strategy.scheduled_update.duration, 30min);
  EXPECT_FALSE(spec.ssh);
  EXPECT_EQ(spec.slurmd, Json::object());
  EXPECT_EQ(spec.volume_claim_templates, Json::array());
}

TEST(Field, NullIsAbsent) {
  const NodeSetSpec spec = nodeset({{"replicas", nullptr},
                                    {"ssh", nullptr},
                                    {"slurmd", nullptr},
                                    {"template", nullptr},
                                    {"volumeClaimTemplates", nullptr}})
                               .spec;
  EXPECT_EQ(spec.replicas, 1);
  EXPECT_FALSE(spec.ssh);
  EXPECT_EQ(spec.slurmd, Json::object());
  EXPECT_EQ(spec.volume_claim_templates, Json::array());
}

TEST(Field, ZeroIsNotAbsentWhereThereIsADefault) {
  const NodeSetSpec spec = nodeset({{"replicas", 0}, {"workloadDisruptionProtection", false}}).spec;
  EXPECT_EQ(spec.replicas, 0);
  EXPECT_FALSE(spec.workload_disruption_protection);
  const Json json = to_json(spec);
  EXPECT_EQ(json["replicas"], 0);
  EXPECT_EQ(json["workloadDisruptionProtection"], false);
}

TEST(Field, AllThatIsWrongIsNamedWithPathValueAndWhatIsAllowed) {
  const std::string text = problem({{"replicas", -1},
                                    {"scalingMode", "Deployment"},
                                    {"ordinalPadding", 11},
                                    {"partition", {{"config", "a\nb"}}},
                                    {"template", {{"metadata", {{"labels", {{"a", 1}}}}}}}});
  EXPECT_THAT(text, HasSubstr("spec.controllerRef: required"));
  EXPECT_THAT(text, HasSubstr("spec.replicas: -1, must be 0 or more"));
  EXPECT_THAT(text, HasSubstr("spec.scalingMode: \"Deployment\", must be one of: DaemonSet, StatefulSet"));
  EXPECT_THAT(text, HasSubstr("spec.ordinalPadding: 11, must be from 0 to 10"));
  EXPECT_THAT(text, HasSubstr(R"(spec.partition.config: "a\nb", must match)"));
  EXPECT_THAT(text, HasSubstr("spec.template.metadata.labels[a]: 1, must be a string"));
}

struct BadCase {
  Json spec;
  std::string message;
};
class Refused : public testing::TestWithParam<BadCase> {};
TEST_P(Refused, WithItsReason) {
  Json spec = GetParam().spec;
  if (!spec.contains("controllerRef")) spec["controllerRef"] = {{"name", "slurm"}};
  EXPECT_THAT(problem(spec), HasSubstr(GetParam().message));
}
INSTANTIATE_TEST_SUITE_P(
    Field, Refused,
    testing::Values(
        BadCase{{{"controllerRef", {{"name", ""}}}}, "spec.controllerRef.name: \"\", must not be empty"},
        BadCase{{{"controllerRef", Json::object()}}, "spec.controllerRef.name: required"},
        BadCase{{{"controllerRef", "slurm"}}, "spec.controllerRef: \"slurm\", must be an object"},
        BadCase{{{"controllerRef", {{"name", std::string(254, 'a')}}}}, "must have at most 253 characters"},
        BadCase{{{"replicas", "2"}}, "spec.replicas: \"2\", must be a whole number"},
        BadCase{{{"replicas", 1.5}}, "spec.replicas: 1.5, must be a whole number"},
        BadCase{{{"replicas", 3'000'000'000}}, "spec.replicas: 3000000000, must fit in 32 bits"},
        BadCase{{{"pinToNode", "yes"}}, "spec.pinToNode: \"yes\", must be true or false"},
        BadCase{{{"extraConf", Json::array()}}, "spec.extraConf: [], must be a string"},
        BadCase{{{"volumeClaimTemplates", Json::object()}}, "spec.volumeClaimTemplates: {}, must be a list"},
        BadCase{{{"template", {{"spec", {{"hostname", "-a"}}}}}}, "spec.template.spec.hostname: \"-a\", must match"},
        BadCase{{{"template", {{"spec", {{"hostname", "a.b"}}}}}}, "spec.template.spec.hostname: \"a.b\", must match"},
        BadCase{{{"template", {{"spec", {{"hostname", std::string(63, 'a')}}}}}}, "must have at most 62 characters"},
        BadCase{{{"partition", {{"config", ""}}}}, "spec.partition.config: \"\", must match"},
        BadCase{{{"ssh", {{"sssdConfRef", Json::object()}}}}, "spec.ssh.sssdConfRef.key: required"},
        BadCase{{{"updateStrategy", {{"rollingUpdate", {{"maxUnavailable", 0}}}}}}, "maxUnavailable: 0, must be 1 or more"},
        BadCase{{{"updateStrategy", {{"rollingUpdate", {{"maxUnavailable", "00%"}}}}}}, "maxUnavailable: \"00%\", must match"},
        BadCase{{{"updateStrategy", {{"rollingUpdate", {{"maxUnavailable", true}}}}}}, "true, must be a number or a string"},
        BadCase{{{"updateStrategy", {{"scheduledUpdate", {{"duration", "soon"}}}}}}, "duration: \"soon\", must match"},
        BadCase{{{"updateStrategy", {{"scheduledUpdate", {{"duration", "99999999h"}}}}}}, "is too long"},
        BadCase{{{"updateStrategy", {{"scheduledUpdate", {{"startTime", "noon"}}}}}}, "startTime: \"noon\", must be a time"},
        BadCase{{{"updateStrategy", {{"scheduledUpdate", {{"flags", {1}}}}}}}, "flags[0]: 1, must be a string"}));

TEST(Field, LongValuesAreCutInMessages) {
  const std::string text = problem({{"controllerRef", {{"name", "c"}}}, {"scalingMode", std::string(500, 'x')}});
  EXPECT_LT(text.size(), 200u);
  EXPECT_THAT(text, HasSubstr("..."));
}

TEST(Field, ALineOfAnyLengthIsRead) {
  const std::string megabyte(std::size_t{1} << 20, 'a');
  const auto partition = from_json<NodeSetPartition>({{"config", megabyte}});
  ASSERT_TRUE(partition) << partition.error().message;
  EXPECT_EQ(partition->config, megabyte);
  EXPECT_FALSE(from_json<NodeSetPartition>({{"config", megabyte + "\n"}}));
}

TEST(Field, TextsTooLongForTheirPatternAreRefusedUnmatched) {
  const std::string megabyte(std::size_t{1} << 20, '1');
  const auto monitor = from_json<ServiceMonitor>({{"interval", megabyte}});
  ASSERT_FALSE(monitor);
  EXPECT_THAT(monitor.error().message, HasSubstr("must have at most 64 characters"));
  const auto persistence = from_json<ControllerPersistence>({{"resources", {{"requests", {{"storage", megabyte}}}}}});
  ASSERT_FALSE(persistence);
  EXPECT_THAT(persistence.error().message, HasSubstr("must have at most 64 characters"));
}

TEST(Field, EmbeddedMembersStandBesideTheOthers) {
  auto spec = from_json<ControllerSpec>({{"persistence", {{"existingClaim", "c"}, {"storageClassName", "fast"}}},
                                         {"metrics", {{"serviceMonitor", {{"labels", {{"a", "b"}}}, {"interval", "30s"}}}}}});
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_TRUE(spec->persistence.enabled);
  EXPECT_EQ(spec->persistence.existing_claim, "c");
  EXPECT_EQ(spec->persistence.claim, (Json{{"storageClassName", "fast"}}));
  EXPECT_EQ(spec->metrics.service_monitor.metadata.labels, (StringMap{{"a", "b"}}));
  const Json json = to_json(*spec);
  EXPECT_EQ(json["persistence"], (Json{{"enabled", true}, {"existingClaim", "c"}, {"storageClassName", "fast"}}));
  EXPECT_EQ(json["metrics"]["serviceMonitor"], (Json{{"enabled", false}, {"labels", {{"a", "b"}}}, {"interval", "30s"}}));
}

TEST(Field, AStatusIsWrittenWithItsZeros) {
  const Json json = to_json(NodeSetStatus{});
  EXPECT_EQ(json["replicas"], 0);
  EXPECT_EQ(json["selector"], "");
  EXPECT_EQ(json["conditions"], Json::array());
  EXPECT_FALSE(json.contains("collisionCount"));
  EXPECT_TRUE(to_json(TokenStatus{})["issuedAt"].is_null());
}

TEST(Field, DiffNamesThePaths) {
  const NodeSet before = nodeset(Json::object());
  const NodeSet after = nodeset({{"replicas", 3}, {"partition", {{"config", "State=UP"}}}});
  EXPECT_THAT(diff(before, after), UnorderedElementsAre("spec.replicas", "spec.partition.config"));
  EXPECT_THAT(diff(before, before), IsEmpty());
}

TEST(Field, FieldsNotActedOnAreThoseThatDifferFromTheirDefault) {
  EXPECT_THAT(fields_not_acted_on(nodeset(Json::object()).spec), IsEmpty());
  EXPECT_THAT(fields_not_acted_on(nodeset({{"replicas", 5}, {"minReadySeconds", 2}}).spec), IsEmpty());
  EXPECT_THAT(fields_not_acted_on(
                  nodeset({{"updateStrategy", {{"type", "RollingUpdate"}, {"rollingUpdate", {{"maxUnavailable", "25%"}}}}},
                           {"pinToNode", false},
                           {"scalingMode", "StatefulSet"},
                           {"volumeClaimTemplates", Json::array()}})
                      .spec),
              IsEmpty());
  EXPECT_THAT(fields_not_acted_on(nodeset({{"updateStrategy", {{"rollingUpdate", {{"maxUnavailable", 2}}}, {"paused", true}}},
                                           {"pinToNode", true},
                                           {"scalingMode", "DaemonSet"},
                                           {"pruneSlurmNodeRecords", "NodeNotFound"},
                                           {"persistentVolumeClaimRetentionPolicy", {{"whenScaled", "Delete"}}},
                                           {"ssh", {{"enabled", true}, {"sssdConfRef", {{"name", "s"}, {"key", "k"}}}}},
                                           {"volumeClaimTemplates", {{{"metadata", {{"name", "a"}}}}}}})
                                      .spec),
              IsEmpty());
  auto controller = from_json<ControllerSpec>({{"external", true},
                                               {"externalConfig", {{"host", "h"}, {"port", 1}}},
                                               {"accountingRef", {{"name", "a"}}},
                                               {"extraConf", "A=1"}});
  ASSERT_TRUE(controller);
  EXPECT_THAT(fields_not_acted_on(*controller), IsEmpty());
}

TEST(Field, AKeyThatMayBeMissingIsNotActedOnButOneThatMustNotIs) {
  const auto ignored = [](bool optional) {
    auto spec = from_json<ControllerSpec>({{"slurmKeyRef", {{"name", "s"}, {"key", "k"}, {"optional", optional}}},
                                           {"jwksKeyRef", {{"name", "w"}, {"key", "k"}, {"optional", optional}}}});
    EXPECT_TRUE(spec);
    return fields_not_acted_on(*spec);
  };
  EXPECT_THAT(ignored(true), UnorderedElementsAre("spec.slurmKeyRef.optional", "spec.jwksKeyRef.optional"));
  EXPECT_THAT(ignored(false), IsEmpty());
}

TEST(Field, ExternalIPsOfAServiceAreNotActedOn) {
  const auto ignored = [](Json service) {
    auto spec = from_json<ControllerSpec>({{"service", {{"spec", std::move(service)}}}});
    EXPECT_TRUE(spec);
    return fields_not_acted_on(*spec);
  };
  EXPECT_THAT(ignored({{"type", "NodePort"}, {"externalIPs", {"192.0.2.1"}}}), ElementsAre("spec.service.spec.externalIPs"));
  EXPECT_THAT(ignored({{"type", "NodePort"}, {"externalIPs", Json::array()}}), IsEmpty());
  EXPECT_THAT(ignored({{"type", "NodePort"}}), IsEmpty());
}

TEST(Field, HostnamesOfWorkersAreTheBeginningOfADnsLabel) {
  for (const std::string& good :
       {std::string(), std::string("cpu"), std::string("cpu-"), std::string("0"), std::string(62, 'a')}) {
    nodeset({{"template", {{"spec", {{"hostname", good}}}}}});
  }
  auto controller = from_json<ControllerSpec>({{"template", {{"spec", {{"hostname", "a.b"}}}}}});
  EXPECT_TRUE(controller);
}

TEST(Field, ServerDefaultsAreFilledInOnlyWhereTheParentIs) {
  const Json schema = Codec<NodeSetSpec>::schema();
  Json spec = {{"controllerRef", {{"name", "c"}}}};
  apply_defaults(schema, spec);
  EXPECT_EQ(spec["replicas"], 1);
  EXPECT_FALSE(spec.contains("updateStrategy"));
  Json with = {{"updateStrategy", {{"rollingUpdate", nullptr}, {"scheduledUpdate", Json::object()}}}};
  apply_defaults(schema, with);
  EXPECT_EQ(with["updateStrategy"]["type"], "RollingUpdate");
  EXPECT_EQ(with["updateStrategy"]["scheduledUpdate"]["duration"], "30m");
  EXPECT_TRUE(with["updateStrategy"]["rollingUpdate"].is_null());
}

TEST(Field, DurationsInGoNotation) {
  EXPECT_EQ(format_duration(0ms), "0s");
  EXPECT_EQ(format_duration(30min), "30m");
  EXPECT_EQ(format_duration(25h + 1s + 5ms), "25h1s5ms");
  EXPECT_EQ(format_duration(-90s), "-1m30s");
  EXPECT_EQ(parse_duration("1h30m0s"), core::Duration(90min));
  EXPECT_EQ(parse_duration("1.5h"), core::Duration(90min));
  EXPECT_EQ(parse_duration("+.5s"), core::Duration(500ms));
  EXPECT_EQ(parse_duration("0"), core::Duration(0ms));
  EXPECT_EQ(parse_duration("-2m"), core::Duration(-2min));
  EXPECT_EQ(parse_duration("1500us"), core::Duration(1ms));
  for (const char* wrong : {"", "1", "m", "1 m", "1d", "1.2.3s", ".s", "-", "99999999999h", "1m30"}) {
    EXPECT_FALSE(parse_duration(wrong)) << wrong;
  }
}

RC_GTEST_PROP(Field, DurationsSurviveARoundTrip, ()) {
  const core::Duration d{*rc::gen::inRange<std::int64_t>(-1'000'000'000, 1'000'000'000)};
  RC_ASSERT(parse_duration(format_duration(d)).value() == d);
}

TEST(Common, ConditionsAreFoundByType) {
  std::vector<Condition> conditions(2);
  conditions[0].type = "Ready";
  conditions[1].type = "Degraded";
  EXPECT_EQ(find_condition(conditions, "Degraded"), &conditions[1]);
  EXPECT_EQ(find_condition(conditions, "Other"), nullptr);
}

TEST(Controller, NamesItsCluster) {
  ControllerSpec spec;
  EXPECT_EQ(cluster_name(spec, "default", "slurm"), "default_slurm");
  spec.cluster_name = "x";
  EXPECT_EQ(cluster_name(spec, "default", "slurm"), "x");
}

TEST(Controller, TheNewNameOfTheJwtKeyWins) {
  ControllerSpec spec;
  EXPECT_EQ(spec.jwt_key(), nullptr);
  spec.jwt_hs256_key_ref.emplace().name = "old";
  EXPECT_EQ(spec.jwt_key()->name, "old");
  spec.jwt_key_ref.emplace().name = "new";
  EXPECT_EQ(spec.jwt_key()->name, "new");
}

TEST(Token, SecretIsNamedForTokenAndUser) {
  TokenSpec spec;
  spec.username = "alice";
  EXPECT_EQ(token_secret(spec, "t").name, "t-jwt-alice");
  EXPECT_EQ(token_secret(spec, "t").key, "SLURM_JWT");
  spec.username = "jane.doe-1";
  EXPECT_EQ(token_secret(spec, "t").name, "t-jwt-jane.doe-1");
  std::set<std::string> names;
  for (const auto& [username, begin] :
       {std::pair{"jane.doe@corp.example", "t-jwt-jane-doe-corp-example-"}, std::pair{"Jane_D", "t-jwt-jane-d-"},
        std::pair{"jane_d", "t-jwt-jane-d-"}, std::pair{"CORP\\jane", "t-jwt-corp-jane-"}, std::pair{"a b", "t-jwt-a-b-"},
        std::pair{"a.", "t-jwt-a-"}, std::pair{"a-", "t-jwt-a-"}, std::pair{"é", "t-jwt-"}}) {
    spec.username = username;
    const std::string secret = token_secret(spec, "t").name;
    EXPECT_TRUE(secret.starts_with(begin)) << secret;
    EXPECT_EQ(secret.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos) << secret;
    EXPECT_EQ(secret, token_secret(spec, "t").name);
    names.insert(secret);
  }
  EXPECT_EQ(names.size(), 8U) << "each user has a Secret of his own";
  spec.username = std::string(300, 'x');
  EXPECT_LE(token_secret(spec, std::string(63, 't')).name.size(), 253U);
  spec.secret_ref.emplace().name = "mine";
  spec.secret_ref->key = "token";
  EXPECT_EQ(token_secret(spec, "t").name, "mine");
  EXPECT_EQ(token_secret(spec, "t").key, "token");
}

}  // namespace
}  // namespace api
