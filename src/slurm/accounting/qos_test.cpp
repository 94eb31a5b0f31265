#include "slurm/accounting/qos.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "slurm/accounting/acts.hpp"
#include "slurm/rest/decode_accounting.hpp"

namespace slurm::accounting {
namespace {

using core::Json;
using ::testing::HasSubstr;

/// Stores `body` as a QOS, and returns the settings of the QOS that slurmrestd would then report.
Settings stored(const Json& body) {
  Json row = body;
  row["id"] = 7;
  const auto decoded = decode_qos(Json{{"qos", Json::array({row})}, {"errors", Json::array()}}.dump());
  if (!decoded || decoded->rows.empty()) {
    ADD_FAILURE() << (decoded ? "no row" : decoded.error().message);
    return {};
  }
  Settings out = settings_of(*decoded->rows.front());
  // slurmdbd drops TRES limits with the value -1.
  std::erase_if(out, [](const auto& entry) { return entry.second == -1; });
  return out;
}

/// Returns a value that is not the default.
Json other_value(const QosField& field) {
  switch (field.form) {
    case FieldForm::kText:
      return "text";
    case FieldForm::kFlags:
      return Json::array({"DenyOnLimit", "NoDecay"});
    case FieldForm::kNames:
      return Json::array({"a", "b"});
    case FieldForm::kMode:
      return "Requeue";
    case FieldForm::kFraction:
      return 2.5;
    default:
      return 30;
  }
}

std::string setting_of(const QosField& field) {
  return std::string(field.name) + (field.form == FieldForm::kTres ? "/gres/gpu" : "");
}

TEST(Qos, EveryFieldIsWrittenReadAndReset) {
  for (const QosField& field : kQosFields) {
    SCOPED_TRACE(field.name);
    const std::string setting = setting_of(field);
    const Settings wanted{{setting, other_value(field)}};
    const auto body = qos_body("gpu", {}, wanted, "v0.0.45");
    ASSERT_TRUE(body) << body.error().message;
    const Settings found = stored(*body);
    EXPECT_TRUE(differences(wanted, found).empty()) << body->dump();
    EXPECT_NE(value_of(found, setting), default_of(setting));
    const Settings none{{setting, default_of(setting)}};
    ASSERT_EQ(differences(none, found).size(), 1U);
    const auto reset = qos_body("gpu", found, none, "v0.0.45");
    if (field.form == FieldForm::kNames) {
      EXPECT_EQ(reset.error().message, "Preempt: slurmrestd cannot empty the list");
      continue;
    }
    ASSERT_TRUE(reset);
    EXPECT_TRUE(differences(none, stored(*reset)).empty()) << reset->dump();
  }
}

TEST(Qos, ABodyHasWhatSlurmWouldClearIfItWereOmitted) {
  const Settings found{{"Flags", Json::array({"NoReserve", "OF_A_LATER_RELEASE"})}, {"PreemptMode", "Cancel"}, {"GrpJobs", 4}};
  const auto body = qos_body("gpu", found, {{"Priority", 5}}, "v0.0.45");
  ASSERT_TRUE(body);
  EXPECT_EQ((*body)["flags"], Json::array({"NO_RESERVE", "OF_A_LATER_RELEASE"}));
  EXPECT_EQ((*body)["preempt"]["mode"], Json::array({"CANCEL"}));
  EXPECT_EQ((*body)["limits"]["max"]["active_jobs"]["count"]["number"], 4);
  EXPECT_EQ((*body)["priority"]["number"], 5);
  EXPECT_FALSE(body->contains("id"));
}

TEST(Qos, WhatAReleaseCannotExpressIsRefusedByName) {
  const auto refusal = [](const Settings& wanted, std::string_view parser) {
    const auto body = qos_body("gpu", {}, wanted, parser);
    return body ? "" : std::string(core::to_string(body.error().code)) + " " + body.error().message;
  };
  EXPECT_THAT(refusal({{"GrpSubmitJobs", 4}}, "v0.0.41"), HasSubstr("GrpSubmitJobs: slurmrestd with data_parser v0.0.41"));
  EXPECT_THAT(refusal({{"GrpTRESMins/cpu", 4}}, "v0.0.40"), HasSubstr("GrpTRESMins/cpu: "));
  EXPECT_THAT(refusal({{"Flags", Json::array({"PartitionQOS"})}}, "v0.0.42"), HasSubstr("Flags: PartitionQOS: "));
  EXPECT_EQ(refusal({{"GrpSubmitJobs", 4}, {"Flags", Json::array({"PartitionQOS"})}}, "v0.0.43"), "");
}

TEST(Qos, DifferencesIgnoreWhatSlurmFolds) {
  const Settings found{{"Description", "for gpus"}, {"UsageFactor", 0.333333}};
  EXPECT_TRUE(differences({{"Description", "For GPUs"}, {"UsageFactor", 1.0 / 3}, {"GrpJobs", "unlimited"}}, found).empty());
  const auto left = differences({{"GrpTRES/cpu", 8}, {"Flags", Json::array()}, {"Description", "x"}},
                                {{"GrpTRES/cpu", 4}, {"Flags", Json::array({"NoDecay"})}});
  ASSERT_EQ(left.size(), 3U);
  EXPECT_EQ(left[0].text(), "Description is \"\", wanted \"x\"");
  EXPECT_EQ(left[1].text(), "Flags is NoDecay, wanted none");
  EXPECT_EQ(left[2].text(), "GrpTRES/cpu is 4, wanted 8");
}

TEST(Qos, SettingsHaveFields) {
  EXPECT_NE(field_of("GrpTRES/gres/gpu"), nullptr);
  EXPECT_EQ(tres_of("GrpTRES/gres/gpu"), "gres/gpu");
  for (const char* none : {"GrpTRES", "GrpJobs/cpu", "Nothing", ""}) EXPECT_EQ(field_of(none), nullptr) << none;
}

// slurmrestd reads the names in the first list as numbers, infinity, NaN, truth values or null.
TEST(Qos, NamesThatSlurmrestdTakesForOtherValues) {
  for (const char* name : {"007", "7", "1e3", "0x1f", "inf", "nan", "t", "On", "no", "off", "null", "~"})
    EXPECT_NE(qos_name_problem(name), "") << name;
  for (const char* name : {"gpu", "normal", "7b", "1-2", "one", "true", "none", "in"})
    EXPECT_EQ(qos_name_problem(name), "") << name;
}

TEST(Qos, TheOnlyOneOfAnAssociationIsInUse) {
  std::map<std::string, std::shared_ptr<const Association>> rows;
  const auto add = [&](const char* account, std::vector<std::string> qos) {
    auto row = std::make_shared<Association>();
    row->cluster = "site";
    row->account = account;
    row->qos = std::move(qos);
    rows[row->key()] = row;
  };
  add("nvidia", {"Own"});
  add("science", {"own", "normal"});
  View view;
  view.qos.rows = std::make_shared<const std::map<std::string, std::shared_ptr<const Qos>>>();
  view.associations.rows = std::make_shared<const std::map<std::string, std::shared_ptr<const Association>>>(std::move(rows));
  EXPECT_EQ(use_of_qos("own", view), "it is the only QOS that may be used by account nvidia, cluster site");
  EXPECT_EQ(use_of_qos("normal", view), "");
}

TEST(Qos, AConfigInTheSpellingOfADataParserIsTranslated) {
  const auto read = read_qos(Json::parse(R"({
    "description": "for GPUs", "priority": {"set": true, "number": 100}, "flags": ["DENY_LIMIT", "NoDecay"],
    "usage_factor": 1.5, "usage_threshold": {"infinite": true},
    "preempt": {"list": ["low"], "mode": ["REQUEUE"], "exempt_time": null},
    "limits": {"grace_time": 30, "factor": {"set": false},
      "max": {"jobs": {"per": {"user": "40"}, "active_jobs": {"per": {"user": 4}}},
              "tres": {"total": [{"type": "gres", "name": "gpu", "count": 8}, {"type": "cpu", "count": -1}]},
              "wall_clock": {"per": {"job": {"set": true, "infinite": false, "number": 1440}}}}}})"));
  ASSERT_TRUE(read) << read.error().message;
  const Settings wanted{{"Description", "for GPUs"},
                        {"Priority", 100},
                        {"Flags", Json::array({"DenyOnLimit", "NoDecay"})},
                        {"UsageFactor", 1.5},
                        {"UsageThreshold", "default"},
                        {"Preempt", Json::array({"low"})},
                        {"PreemptMode", "Requeue"},
                        {"GraceTime", 30},
                        {"MaxSubmitJobsPerUser", 40},
                        {"MaxJobsPerUser", 4},
                        {"GrpTRES/gres/gpu", 8},
                        {"GrpTRES/cpu", "unlimited"},
                        {"MaxWallDurationPerJob", 1440}};
  EXPECT_EQ(*read, wanted);
}

TEST(Qos, WhatAConfigHasThatIsUnknownIsRefusedWithItsPath) {
  const auto refusal = [](const char* config, std::string_view version = "") {
    const auto read = read_qos(Json::parse(config), version);
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(refusal(R"({"limits": {"max": {"jobz": {}}}, "prio": 1})"), "limits.max.jobz: unknown; prio: unknown");
  EXPECT_EQ(refusal(R"({"limits": 3})"), "limits: must be an object");
  EXPECT_EQ(refusal(R"({"flags": ["DenyLimit"]})"), "flags: DenyLimit is no flag of a QOS");
  EXPECT_EQ(refusal(R"({"preempt": {"mode": ["KILL"]}})"), "preempt.mode: KILL is no preempt mode");
  EXPECT_EQ(refusal(R"({"priority": {"set": true, "nummer": 1}})"), "priority: must be a number, or {set, infinite, number}");
  EXPECT_EQ(refusal(R"({"priority": -1})"), "priority: must be 0 or more");
  EXPECT_EQ(refusal(R"({"limits": {"max": {"tres": {"total": [{"type": "cpu", "amount": 1}]}}}})"),
            "limits.max.tres.total.amount: unknown");
  EXPECT_EQ(refusal(R"({"limits": {"max": {"jobs": {"count": 1}}}})", "v0.0.41"),
            "limits.max.jobs.count: data_parser v0.0.41 has no such field");
  EXPECT_EQ(refusal(R"({"limits": {"max": {"jobs": {"count": 1}}}})", "v0.0.42"), "");
}

RC_GTEST_PROP(Qos, WhatIsWrittenIsWhatIsFound, ()) {
  Settings found, wanted;
  for (const QosField& field : kQosFields) {
    for (Settings* each : {&found, &wanted}) {
      const int choice = *rc::gen::inRange(0, field.form == FieldForm::kNames ? 1 : 3);
      if (choice == 0) continue;
      (*each)[setting_of(field)] = choice == 1 ? default_of(setting_of(field)) : other_value(field);
    }
  }
  const auto body = qos_body("q", found, wanted, "v0.0.45");
  RC_ASSERT(body.has_value());
  const Settings after = stored(*body);
  RC_ASSERT(differences(wanted, after).empty());
  for (const auto& [setting, value] : found) {
    if (!wanted.contains(setting)) RC_ASSERT(differences({{setting, value}}, after).empty());
  }
}

}  // namespace
}  // namespace slurm::accounting
