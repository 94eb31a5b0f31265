#include "operator/governance/settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace op::governance {
namespace {

using core::Json;
using slurm::accounting::Settings;
using ::testing::HasSubstr;

core::Result<DeclaredQos> read_all(const char* spec) {
  Json json = Json::parse(spec);
  json["accountingRef"] = {{"name", "a"}};
  const auto parsed = api::from_json<api::SlurmQosSpec>(json);
  if (!parsed) return std::unexpected(parsed.error());
  return declared(*parsed);
}
core::Result<Settings> read(const char* spec) {
  auto all = read_all(spec);
  if (!all) return std::unexpected(all.error());
  return std::move(all->settings);
}
std::string refusal(const char* spec) {
  const auto settings = read(spec);
  return settings ? "" : settings.error().message;
}

TEST(Settings, ExpressionsStandApartFromPlainValues) {
  const auto all = read_all(R"({"limits": {"grpTRES": {"cpu": "50%", "mem": "1G", "node": 4},
                                "maxTRESPerUser": {"gres/gpu:h100": "partition(gpu) - 1"}}})");
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->settings, (Settings{{"GrpTRES/mem", 1024}, {"GrpTRES/node", 4}}));
  ASSERT_EQ(all->capacity.size(), 2u);
  EXPECT_EQ(all->capacity.at("GrpTRES/cpu").limit, "grpTRES[cpu]");
  EXPECT_EQ(all->capacity.at("GrpTRES/cpu").text, "50%");
  EXPECT_EQ(all->capacity.at("MaxTRESPerUser/gres/gpu:h100").tres, "gres/gpu:h100");
}

TEST(Settings, RefusesWrongExpressions) {
  EXPECT_THAT(refusal(R"({"limits": {"grpTRES": {"cpu": "all 2"}}})"), HasSubstr("spec.limits.grpTRES[cpu]: "));
  EXPECT_THAT(refusal(R"({"limits": {"grpTRES": {"billing": "50%"}}})"), HasSubstr("only cpu, mem, node, gres/gpu"));
}

// The API server refuses these when they are applied.
TEST(Settings, ThePatternKnowsTheWordsOfExpressions) {
  const auto applied = [](const std::string& text) {
    const Json json = {{"accountingRef", {{"name", "a"}}}, {"limits", {{"grpTRES", {{"cpu", text}}}}}};
    return api::from_json<api::SlurmQosSpec>(json).has_value();
  };
  for (const char* good : {"50%", "12.5 %", "all - 8", "2 * (all + 1)", "partition(gpu)*0.25", "partition ( a.b-c ) - 2",
                           "max(ceil(all * 0.1), 2)", "min(floor(50%),round(partition(x)))", "4", "4K", "unlimited"})
    EXPECT_TRUE(applied(good)) << good;
  for (const char* bad : {"all / 2", "50% of all", "halfall", "partition gpu", "partition()", "partition(a b)", "2 * 3",
                          "all\n", "least(all, 2)", "50%\n", "ALL"})
    EXPECT_FALSE(applied(bad)) << bad;
}

TEST(Settings, NoExpressionsInPercentagesOfTheCluster) {
  EXPECT_THAT(refusal(R"({"flags": ["Relative"], "limits": {"grpTRES": {"cpu": "50%"}}})"),
              HasSubstr("spec.limits.grpTRES[cpu]: cannot be an expression with the flag Relative"));
  EXPECT_EQ(refusal(R"({"flags": ["Relative"], "limits": {"grpTRES": {"cpu": 50}}})"), "");
}

// slurmctld ends running jobs that are over these two, so they must not fall when a node drains.
TEST(Settings, LimitsThatEndRunningJobsAreNoExpressions) {
  EXPECT_THAT(refusal(R"({"limits": {"grpTRESMins": {"cpu": "50%"}}})"), HasSubstr("limits.grpTRESMins[cpu]"));
  EXPECT_THAT(refusal(R"({"limits": {"maxTRESMinsPerJob": {"cpu": "all"}}})"), HasSubstr("limits.maxTRESMinsPerJob[cpu]"));
}

TEST(Settings, TimesInBothNotations) {
  const std::vector<std::pair<const char*, std::int64_t>> times{
      {"90", 5400},    {"1:30", 90},     {"72:00:00", 259200}, {"3-00:00:00", 259200},
      {"3-0", 259200}, {"1-12", 129600}, {"1-12:30", 131400},  {"72h", 259200},
      {"1h30m", 5400}, {"90s", 90},      {"1500ms", 2},        {"0", 0},
  };
  for (const auto& [text, seconds] : times) EXPECT_EQ(read_time(text), seconds) << text;
  for (const char* wrong : {"", "-1", "1:2:3:4", "x", "1-", "1-x", ":", "1d", "h"})
    EXPECT_EQ(read_time(wrong), std::nullopt) << wrong;
}

TEST(Settings, EveryTypedFieldIsOneOfSlurms) {
  const auto settings = read(R"({
    "description": "D", "priority": 5, "flags": ["NoDecay", "DenyOnLimit", "NoDecay"], "graceTime": "90s", "usageFactor": "1.5",
    "usageThreshold": "default", "limitFactor": 2, "preempt": ["B", "a"], "preemptMode": "Cancel", "preemptExemptTime": "1:00",
    "limits": {"grpJobs": "unlimited", "grpWall": "0:30", "maxWallDurationPerJob": 60, "maxJobsPerUser": "7",
               "grpTRES": {"cpu": 64, "mem": "100G", "gres/gpu": "unlimited", "bb/x": "2048K"}}})");
  ASSERT_TRUE(settings) << settings.error().message;
  const Settings wanted{{"Description", "D"},
                        {"Priority", 5},
                        {"Flags", Json::array({"DenyOnLimit", "NoDecay"})},
                        {"GraceTime", 90},
                        {"UsageFactor", 1.5},
                        {"UsageThreshold", "default"},
                        {"LimitFactor", 2},
                        {"Preempt", Json::array({"a", "b"})},
                        {"PreemptMode", "Cancel"},
                        {"PreemptExemptTime", 60},
                        {"GrpJobs", "unlimited"},
                        {"GrpWall", 1},
                        {"MaxWallDurationPerJob", 60},
                        {"MaxJobsPerUser", 7},
                        {"GrpTRES/cpu", 64},
                        {"GrpTRES/mem", 102400},
                        {"GrpTRES/gres/gpu", "unlimited"},
                        {"GrpTRES/bb/x", 2}};
  EXPECT_EQ(*settings, wanted);
  EXPECT_EQ(*read("{}"), Settings{});
  // Every limit of the schema has a field in Slurm.
  std::size_t limits = 0;
  for (const api::Field& field : api::Codec<api::QosLimits>::list().fields()) {
    std::string name = field.name;
    name[0] = static_cast<char>(name[0] - 'a' + 'A');
    EXPECT_NE(std::ranges::find(slurm::accounting::kQosFields, std::string_view(name), &slurm::accounting::QosField::name),
              slurm::accounting::kQosFields.end())
        << name;
    ++limits;
  }
  EXPECT_EQ(limits, std::ranges::count_if(slurm::accounting::kQosFields, &slurm::accounting::QosField::limits));
}

TEST(Settings, EveryFlagAndPreemptModeOfTheSchemaIsSlurms) {
  const auto flags = enum_names(api::QosFlag{});
  ASSERT_EQ(flags.size(), slurm::accounting::kQosFlags.size());
  for (std::size_t i = 0; i < flags.size(); ++i) EXPECT_EQ(flags[i], slurm::accounting::kQosFlags[i].name);
  const auto modes = enum_names(api::PreemptMode{});
  ASSERT_EQ(modes.size(), slurm::accounting::kPreemptModes.size());
  for (std::size_t i = 0; i < modes.size(); ++i) EXPECT_EQ(modes[i], slurm::accounting::kPreemptModes[i].name);
}

TEST(Settings, WhatIsWrongIsToldWithItsPath) {
  EXPECT_THAT(refusal(R"({"limits": {"grpTRES": {"cpu": "4K"}}})"),
              HasSubstr("spec.limits.grpTRES[cpu]: \"4K\": must be a number without a unit"));
  EXPECT_THAT(refusal(R"({"limits": {"grpTRES": {"a=b": 4}}})"), HasSubstr("is no name of a TRES"));
  EXPECT_THAT(refusal(R"({"limits": {"grpJobs": "5000000000"}})"),
              HasSubstr("spec.limits.grpJobs: must be 4294967292 or less"));
  EXPECT_THAT(refusal(R"({"limits": {"grpJobs": 5000000000}})"),
              HasSubstr("limits.grpJobs: 5000000000, must be from 0 to 4294967292"));
  EXPECT_EQ(refusal(R"({"limits": {"grpTRESMins": {"cpu": 5000000000}}})"), "");
  EXPECT_THAT(refusal(R"({"limits": {"grpWall": "99999999999-0"}})"), HasSubstr("spec.limits.grpWall"));
  EXPECT_THAT(refusal(R"({"config": {"name": "gpu"}})"), HasSubstr("spec.config: name: unknown"));
  EXPECT_THAT(refusal(R"({"limits": {"grpJobs": 4}, "config": {"limits": {"max": {"active_jobs": {"count": 5}}}}})"),
              HasSubstr("spec.config: limits/max/active_jobs/count: stands in spec.limits.grpJobs as well"));
}

}  // namespace
}  // namespace op::governance
