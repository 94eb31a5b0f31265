#include "slinky/status.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/token.hpp"
#include "kube/acts.hpp"
#include "slinky/names.hpp"

namespace slinky {
namespace {

using core::Json;

constexpr core::WallTime kNow{core::Duration{1767225600123}};

api::Condition condition(std::string type, api::ConditionStatus status, core::WallTime since) {
  return {std::move(type), status, "Old", "old", since, 1};
}

TEST(Conditions, TimeMovesOnlyWithTheStatus) {
  const core::WallTime before{core::Duration{1000000000}};
  Conditions conditions(
      {condition("A", api::ConditionStatus::kTrue, before), condition("B", api::ConditionStatus::kTrue, before),
       condition("Gone", api::ConditionStatus::kTrue, before)},
      7, kNow);
  conditions.set("B", false, "New", "now");
  conditions.set("A", true, "New", "still");
  const Json json = conditions.json();
  ASSERT_EQ(json.size(), 2U) << "what is not set any more is gone";
  EXPECT_EQ(json[0], (Json{{"type", "A"},
                           {"status", "True"},
                           {"reason", "New"},
                           {"message", "still"},
                           {"lastTransitionTime", "1970-01-12T13:46:40Z"},
                           {"observedGeneration", 7}}));
  EXPECT_EQ(json[1]["lastTransitionTime"], "2026-01-01T00:00:00Z");
}

TEST(Conditions, SetTwiceIsSetOnce) {
  Conditions conditions({}, 1, kNow);
  conditions.set("A", true, "X", "");
  conditions.set("A", false, "Y", "z");
  ASSERT_EQ(conditions.all().size(), 1U);
  EXPECT_EQ(conditions.all()[0].reason, "Y");
}

TEST(LastWords, AreTheCause) {
  EXPECT_EQ(last_words(""), "");
  EXPECT_EQ(last_words("slurmctld: starting\nslurmctld: done\n\n"), "slurmctld: done");
  EXPECT_EQ(last_words("slurmctld: error: a\nslurmctld: error: a\nbye"), "error: a");
  EXPECT_EQ(last_words("[12:00] error: cannot find x\n[12:00] fatal: no plugin\n[12:01] error: after\nbye"),
            "error: cannot find x; fatal: no plugin");
  EXPECT_EQ(last_words("error: " + std::string(590, 'x') + "\nfatal: no file"), "fatal: no file") << "it is not cut away";
  EXPECT_EQ(last_words("fatal: " + std::string(700, 'x')).size(), 603U) << "cut, with dots";
}

std::string summary(bool ready, const std::vector<Problem>& problems, const std::string& waiting) {
  Conditions conditions({}, 1, kNow);
  set_summary(conditions, ready, problems, waiting);
  std::string out;
  for (const Json& c : conditions.json()) {
    out += c["type"].get<std::string>() + "=" + c["status"].get<std::string>() + "/" + c["reason"].get<std::string>() + " ";
  }
  return out;
}

TEST(SetSummary, TellsWrongFromSlow) {
  EXPECT_EQ(summary(true, {}, ""), "Degraded=False/AsExpected Progressing=False/Done Ready=True/Ready ");
  EXPECT_EQ(summary(false, {}, "starting"), "Degraded=False/AsExpected Progressing=True/Waiting Ready=False/Waiting ");
  EXPECT_EQ(summary(false, {{"Bad", "x"}}, ""), "Degraded=True/Bad Progressing=False/Blocked Ready=False/Bad ");
  EXPECT_EQ(summary(true, {{"Bad", "x"}}, "loading"), "Degraded=True/Bad Progressing=True/Waiting Ready=True/Ready ");
  EXPECT_EQ(summary(false, {{"Slow", "x", Problem::Kind::kComing}, {"Bad", "y"}}, ""),
            "Degraded=True/Bad Progressing=True/Slow Ready=False/Bad ");
}

kube::Object object(Json status) {
  kube::Object out;
  out.meta.ns = "ns";
  out.meta.name = "x";
  out.meta.uid = "u";
  out.meta.resource_version = "5";
  out.body = {{"status", std::move(status)}};
  return out;
}

TEST(ReadObject, KeepsTheStatusOfWhatCannotBeRead) {
  kube::Object some = object({{"observedGeneration", 3}});
  some.body["spec"] = {{"username", "alice"}};
  api::Token token;
  EXPECT_EQ(read_object(some, token), "");
  EXPECT_EQ(token.spec.username, "alice");
  some.body["spec"]["username"] = 7;
  api::Token broken;
  EXPECT_THAT(read_object(some, broken), testing::HasSubstr("spec.username"));
  EXPECT_EQ(broken.status.observed_generation, 3);
  some.body.erase("status");
  EXPECT_NE(read_object(some, broken), "") << "and without any";
}

TEST(StatusStep, WritesOnlyWhatDiffersAndTakesOutTheRest) {
  const kube::Object there = object({{"a", 1}, {"b", {{"c", 2}}}, {"old", true}});
  EXPECT_FALSE(status_step(resources::kToken, there, {{"a", 1}, {"b", {{"c", 2}}}, {"old", true}}));
  const auto step = status_step(resources::kToken, there, {{"a", 1}, {"b", {{"c", 3}}}});
  ASSERT_TRUE(step);
  const auto* patch = dynamic_cast<const kube::Patch*>(step->act.get());
  ASSERT_NE(patch, nullptr);
  EXPECT_EQ(patch->patch, (Json{{"status", {{"b", {{"c", 3}}}, {"old", nullptr}}}}));
  EXPECT_EQ(patch->subresource, "status");
  EXPECT_EQ(patch->resource_version, "5");
}

TEST(DegradedEvent, ComesOnceForOneMessage) {
  kube::ObjectMeta meta;
  Conditions bad({}, 1, kNow);
  set_summary(bad, false, {{"Bad", "x"}}, "");
  EXPECT_TRUE(degraded_event(resources::kToken, meta, {}, bad));
  EXPECT_FALSE(degraded_event(resources::kToken, meta, bad.all(), bad));
  Conditions worse({}, 1, kNow);
  set_summary(worse, false, {{"Bad", "y"}}, "");
  EXPECT_TRUE(degraded_event(resources::kToken, meta, bad.all(), worse));
  Conditions good({}, 1, kNow);
  set_summary(good, true, {}, "");
  EXPECT_FALSE(degraded_event(resources::kToken, meta, bad.all(), good));
}

TEST(StepProblems, RacesCountOnlyWhenTheyLast) {
  const auto outcome = [](core::ErrorCode code, int count) {
    return plan::Outcome{plan::Outcome::State::kFailed, count, {}, {}, core::Error{code, "words\nof it", 0, {}, {}}};
  };
  EXPECT_TRUE(step_problems({{{"a"}, outcome(core::ErrorCode::kConflict, 1)}}).empty());
  EXPECT_EQ(step_problems({{{"a"}, outcome(core::ErrorCode::kConflict, 5)}}).size(), 1U);
  const auto found = step_problems({{{"a"}, outcome(core::ErrorCode::kForbidden, 1)}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].message, "a: words of it");
  plan::Outcome done;
  EXPECT_TRUE(step_problems({{{"a"}, done}}).empty());
}

TEST(StepProblems, OfStepsThatAreWishedNoMoreNothingIsTold) {
  const plan::Outcome refused{
      plan::Outcome::State::kFailed, 1, {}, {}, core::Error{core::ErrorCode::kForbidden, "no", 403, {}, {}}};
  plan::Plan plan;
  plan.lane("pod").add({{"planned"}, "", nullptr});
  plan.lane("pod").then().add({{"planned later"}, "", nullptr});
  plan.remember({"remembered"});
  std::vector<std::string> told;
  for (const Problem& problem : step_problems(
           {{{"gone"}, refused}, {{"planned"}, refused}, {{"planned later"}, refused}, {{"remembered"}, refused}}, plan)) {
    told.push_back(problem.message);
  }
  EXPECT_EQ(told, (std::vector<std::string>{"planned: no", "planned later: no", "remembered: no"}));
}

TEST(StepProblems, ANamespaceThatEndsIsWaitedFor) {
  plan::Outcome refused{plan::Outcome::State::kFailed, 1, {}, {}, core::Error{core::ErrorCode::kForbidden, "no", 403, {}, {}}};
  refused.error->reason = "NamespaceTerminating";
  const auto found = step_problems({{{"a"}, refused}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_FALSE(found[0].wrong());
}

}  // namespace
}  // namespace slinky
