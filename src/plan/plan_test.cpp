#include "plan/plan.hpp"

#include <gtest/gtest.h>

#include "plan/evidence.hpp"
#include "plan/testing/observing.hpp"

namespace plan {
namespace {

using namespace std::chrono_literals;

struct TestAct final : Act {
  explicit TestAct(bool t = false) : takes_away(t) {}
  bool takes_away;
  [[nodiscard]] core::Json describe() const override { return {{"act", "test"}}; }
  [[nodiscard]] bool destructive() const override { return takes_away; }
};

Step step(StepId id, bool takes_away = false) {
  return {std::move(id), "why", std::make_shared<TestAct>(takes_away)};
}

TEST(Plan, DescribesStepsLanesNeedsWakeAndIntent) {
  Plan plan;
  plan.lane("delete").add(step({"d1"}, true)).then().then().add(step({"d2"}));
  plan.lane("idle");
  plan.need({"node", std::make_shared<TestAct>()});
  plan.wake_after(2s, "deadline");
  plan.intent = {"scale in", {{{"delete", "Pod"}, {"a/cpu-2", "a/cpu-3", "a/cpu-5"}}, {{"drain"}, {"cpu-3"}}}, 3, 0};
  EXPECT_EQ(plan.describe(), core::Json::parse(R"json({
    "lanes": {"delete": [[{"id": "d1", "reason": "why", "do": {"act": "test"}, "destructive": true}],
                         [{"id": "d2", "reason": "why", "do": {"act": "test"}}]]},
    "needs": {"node": {"act": "test"}},
    "wake": {"afterMs": 2000, "why": "deadline"},
    "intent": {"summary": "scale in", "remaining": ["delete Pod a/cpu-[2-3,5] (3)", "drain cpu-3"], "pods": 3}})json"));
  EXPECT_EQ(plan.step_count(), 2U);
  EXPECT_FALSE(plan.empty());
}

TEST(StepId, TellsPeopleItsParts) {
  const StepId deletion{"delete", "Slurm node"};
  EXPECT_EQ(deletion.of("cpu-0").text(), "delete Slurm node cpu-0");
  EXPECT_EQ((StepId{"resume", "", "cpu-0"}.text()), "resume cpu-0");
  EXPECT_EQ((StepId{"event", "", "Scaled", "out: 3"}.text()), "event Scaled: out: 3");
  EXPECT_TRUE(deletion.of("cpu-0").is(deletion));
  EXPECT_FALSE((StepId{"delete", "Pod", "cpu-0"}.is(deletion)));
  // A kind and a name with the same text give different ids.
  EXPECT_NE((StepId{"delete", "Pod"}), (StepId{"delete", "", "Pod"}));
}

TEST(Plan, AnEmptyPlanSaysNothing) {
  EXPECT_TRUE(Plan().empty());
  EXPECT_EQ(Plan().describe(), core::Json::object());
  Plan needy;
  needy.need({"x", std::make_shared<TestAct>()});
  EXPECT_FALSE(needy.empty());
}

TEST(Plan, WithoutAnIntentOfItsOwnItsStepsAreTheIntent) {
  Plan plan;
  plan.lane("network").add(step({"apply", "Service", "b"})).then().add(step({"apply", "Service", "a"}));
  plan.lane("events").add(step({"event", "", "Refused", "bad line: 3"}));
  plan.lane("status").add(step({"status", "", "", "2 of 3"}));
  EXPECT_EQ(plan.whole_intent().text(), "apply Service a,b (2); event Refused; status");
  plan.intent.summary = "end";
  EXPECT_EQ(plan.whole_intent().text(), "end; apply Service a,b (2); event Refused; status");
  plan.intent.add({"remove", "finalizer"});
  EXPECT_EQ(plan.whole_intent().text(), "end; remove finalizer");
}

TEST(Plan, TheTextOfAnIntentIsShortHoweverMuchThereIsToDo) {
  Intent intent;
  for (int i = 0; i < 5000; ++i) intent.add({"create", "Pod", "default/cpu-" + std::to_string(i)});
  EXPECT_EQ(intent.text(), "create Pod default/cpu-[0-4999] (5000)");
  for (int i = 0; i < 5000; ++i) intent.add({"drain", "", "cpu-" + std::to_string(2 * i)});
  EXPECT_LT(intent.text().size(), 300U);
  EXPECT_TRUE(intent.lines()[1].ends_with(",... (5000)")) << intent.lines()[1];
}

TEST(Plan, TheShortestWakeWins) {
  Plan plan;
  plan.wake_after(5s, "long");
  plan.wake_after(1s, "short");
  plan.wake_after(3s, "middle");
  EXPECT_EQ(plan.wake(), 1s);
  EXPECT_EQ(plan.wake_reason(), "short");
}

TEST(Plan, WhatNeedNotBeDoneIsNoStep) {
  Plan plan;
  plan.lane("a").add(std::optional<Step>()).then().add(std::optional(step({"1"})));
  ASSERT_EQ(plan.lanes().at("a").groups().size(), 1U);
  EXPECT_EQ(plan.lanes().at("a").groups().front().front().id.verb, "1");
}

TEST(Plan, ALaneIsFoundAgainByName) {
  Plan plan;
  plan.lane("a").add(step({"1"}));
  plan.lane("a").then().add(step({"2"}));
  ASSERT_EQ(plan.lanes().size(), 1U);
  EXPECT_EQ(plan.lanes().at("a").groups().size(), 2U);
}

/// A kind of evidence.
class Seen final : public Evidence {
 public:
  Seen(const Observing& observing, std::optional<core::MonoTime> good_until)
      : Evidence(observing, "Seen", "it was seen", good_until) {}
};

TEST(Evidence, IsIssuedByWhoObservesOnly) {
  static_assert(!std::is_default_constructible_v<Observing>);
  static_assert(!std::is_constructible_v<Observing, core::MonoTime>, "only the runtime makes one");
  static_assert(!std::is_copy_constructible_v<Observing> && !std::is_move_constructible_v<Observing>,
                "no Observed can keep it for its plan");
  static_assert(!std::is_constructible_v<Evidence, const Observing&, std::string_view, std::string, std::nullopt_t>,
                "only a room's own kinds are issued");
  static_assert(!std::is_default_constructible_v<Seen>);
  const Seen seen(testing::Observer::at(core::MonoTime{}), std::nullopt);
  EXPECT_EQ(seen.kind(), "Seen");
  EXPECT_EQ(seen.detail(), "it was seen");
}

TEST(Evidence, IsGoodUntilItsTime) {
  const core::MonoTime until{core::Duration{5000}};
  const Seen passing(testing::Observer::at(core::MonoTime{}), until), lasting(testing::Observer::at(until), std::nullopt);
  EXPECT_TRUE(passing.good_at(until));
  EXPECT_FALSE(passing.good_at(until + core::Duration{1}));
  EXPECT_TRUE(lasting.good_at(core::MonoTime{core::Duration::max()}));
}

}  // namespace
}  // namespace plan
