#include "plan/executor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "core/testing/manual_loop.hpp"

namespace plan {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

struct TestAct final : Act {
  explicit TestAct(std::string n) : name(std::move(n)) {}
  std::string name;
  [[nodiscard]] core::Json describe() const override { return {{"act", "test"}, {"name", name}}; }
};

struct OtherAct final : Act {
  [[nodiscard]] core::Json describe() const override { return {{"act", "other"}}; }
};

struct TestGate final : Gate {
  [[nodiscard]] bool open() const override { return false; }
  [[nodiscard]] std::string describe() const override { return "closed"; }
};

/// Answers each act after its own delay, with its own result.
class FakeTarget final : public Target {
 public:
  explicit FakeTarget(core::Loop& loop) : loop_(loop) {}

  [[nodiscard]] bool handles(const Act& act) const override { return dynamic_cast<const TestAct*>(&act) != nullptr; }

  void execute(ActPtr act, Done done) override {
    const std::string name = static_cast<const TestAct&>(*act).name;
    log.push_back("+" + name);
    ++in_flight;
    most_in_flight = std::max(most_in_flight, in_flight);
    const core::Duration delay = delays.contains(name) ? delays[name] : 10ms;
    const auto finish = [this, name, done = std::move(done)] {
      log.push_back("-" + name);
      --in_flight;
      ActResult result{core::Json(name), {}};
      if (errors.contains(name)) result.value = std::unexpected(errors.at(name));
      if (gates.contains(name)) result.gates = {gates[name]};
      done(result);
      if (answer_twice) done(result);
    };
    if (delay == 0ms) {
      finish();  // Target must not answer from inside execute(), but the executor must tolerate it
    } else {
      loop_.after(delay, finish);
    }
  }

  std::vector<std::string> log;  ///< "+a" when started, "-a" when answered.
  std::map<std::string, core::Duration> delays;
  std::map<std::string, core::Error> errors;
  std::map<std::string, GatePtr> gates;
  std::size_t in_flight = 0;
  std::size_t most_in_flight = 0;
  bool answer_twice = false;

 private:
  core::Loop& loop_;
};

Step step(const std::string& name) {
  return {{name}, "because", std::make_shared<TestAct>(name)};
}

core::Error error(core::ErrorCode code) {
  return {code, "no", 0, {}, {}};
}

struct Fixture : testing::Test {
  core::ManualLoop loop;
  FakeTarget target{loop};
  PassLimits limits;
  std::vector<PassResult> results;

  void run(const Plan& plan, core::Duration time = 60s, const std::function<bool(const Step&)>& withheld = {}) {
    Executor executor(loop, target, limits);
    executor.run(
        plan, [this](PassResult result) { results.push_back(std::move(result)); }, withheld);
    EXPECT_TRUE(results.empty()) << "done must come later";
    loop.advance(time);
  }
};
using ExecutorTest = Fixture;

TEST_F(ExecutorTest, GroupsFollowEachOtherAndLanesDoNot) {
  Plan plan;
  plan.lane("a").add(step("a1")).add(step("a2")).then().add(step("a3"));
  plan.lane("b").add(step("b1"));
  target.delays = {{"a1", 30ms}, {"a2", 10ms}, {"b1", 20ms}};
  run(plan);
  EXPECT_THAT(target.log, ElementsAre("+a1", "+b1", "+a2", "-a2", "-b1", "-a1", "+a3", "-a3"));
  ASSERT_EQ(results.size(), 1U);
  EXPECT_TRUE(results[0].complete);
  EXPECT_FALSE(results[0].failed);
  EXPECT_EQ(results[0].outcomes.size(), 4U);
  EXPECT_EQ(results[0].outcomes.at({"a3"}).state, Outcome::State::kDone);
  EXPECT_EQ(results[0].outcomes.at({"a3"}).count, 1);
}

TEST_F(ExecutorTest, AFailureLetsItsGroupEndAndStopsItsLaneOnly) {
  Plan plan;
  plan.lane("a").add(step("a1")).add(step("a2")).then().add(step("a3"));
  plan.lane("b").add(step("b1")).then().add(step("b2"));
  target.errors = {{"a1", error(core::ErrorCode::kForbidden)}};
  run(plan);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_FALSE(results[0].complete);
  EXPECT_TRUE(results[0].failed);
  EXPECT_EQ(results[0].outcomes.at({"a1"}).state, Outcome::State::kFailed);
  EXPECT_EQ(results[0].outcomes.at({"a1"}).error->code, core::ErrorCode::kForbidden);
  EXPECT_TRUE(results[0].outcomes.contains({"a2"}));
  EXPECT_FALSE(results[0].outcomes.contains({"a3"}));
  EXPECT_TRUE(results[0].outcomes.contains({"b2"}));
}

TEST_F(ExecutorTest, AWithheldStepEndsItsLaneOnly) {
  Plan plan;
  plan.lane("a").add(step("a1")).then().add(step("a2")).add(step("a3")).then().add(step("a4"));
  plan.lane("b").add(step("b1"));
  plan.lane("c").add(step("a2"));
  run(plan, 60s, [](const Step& step) { return step.id.verb == "a2"; });
  ASSERT_EQ(results.size(), 1U);
  EXPECT_TRUE(results[0].complete);
  EXPECT_FALSE(results[0].failed);
  EXPECT_THAT(target.log, ElementsAre("+a1", "+b1", "-a1", "+a3", "-b1", "-a3"));
}

TEST_F(ExecutorTest, ARefusalStopsTheRestOfTheGroupAndTheLongestWaitWins) {
  limits.max_in_flight = 1;
  Plan plan;
  plan.lane("a").add(step("a1")).add(step("a2"));
  plan.lane("b").add(step("b1")).add(step("b2"));
  core::Error busy = error(core::ErrorCode::kTooManyRequests);
  busy.retry_after = 2000ms;
  core::Error busier = busy;
  busier.retry_after = 5000ms;
  target.errors = {{"a1", busier}, {"b1", busy}};
  run(plan);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_FALSE(results[0].outcomes.contains({"a2"}));
  EXPECT_FALSE(results[0].outcomes.contains({"b2"}));
  EXPECT_FALSE(results[0].complete);
  EXPECT_EQ(results[0].retry_after, 5000ms);
}

TEST_F(ExecutorTest, StopsAfterMaxSteps) {
  limits.max_steps = 3;
  Plan plan;
  for (int i = 0; i < 5; ++i) plan.lane("a").add(step(std::to_string(i)));
  run(plan);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].outcomes.size(), 3U);
  EXPECT_FALSE(results[0].complete);
  EXPECT_FALSE(results[0].failed);
  EXPECT_FALSE(results[0].timed_out);
}

TEST_F(ExecutorTest, StopsAfterMaxTimeButWaitsForWhatIsInFlight) {
  limits.max_time = 100ms;
  limits.max_in_flight = 1;
  Plan plan;
  plan.lane("a").add(step("a1")).add(step("a2")).add(step("a3"));
  target.delays = {{"a1", 60ms}, {"a2", 60ms}};
  run(plan);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_THAT(target.log, ElementsAre("+a1", "-a1", "+a2", "-a2"));
  EXPECT_FALSE(results[0].complete);
  EXPECT_TRUE(results[0].timed_out);
}

TEST_F(ExecutorTest, WhatMayBeLateFollowsASlowGroup) {
  limits.max_time = 100ms;
  const auto late = [](const std::string& id, core::Duration by) {
    Step out = step(id);
    out.late = by;
    return out;
  };
  Plan plan;
  plan.lane("a").add(step("fence")).then().add(late("finish", 200ms)).add(step("beside"));
  plan.lane("b").add(step("other fence")).then().add(late("too late", 140ms));
  plan.lane("c").add(step("other")).then().add(step("next"));
  target.delays = {{"fence", 150ms}, {"other fence", 150ms}, {"other", 150ms}};
  run(plan);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_THAT(results[0].outcomes, UnorderedElementsAre(testing::Key(StepId{"fence"}), testing::Key(StepId{"finish"}),
                                                        testing::Key(StepId{"other fence"}), testing::Key(StepId{"other"})));
  EXPECT_FALSE(results[0].complete);
  EXPECT_TRUE(results[0].timed_out);
}

TEST_F(ExecutorTest, GatesComeAlsoWithErrors) {
  Plan plan;
  plan.lane("a").add(step("a1"));
  target.errors = {{"a1", error(core::ErrorCode::kUnknownOutcome)}};
  target.gates = {{"a1", std::make_shared<TestGate>()}};
  run(plan);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_THAT(results[0].gates, ElementsAre(target.gates["a1"]));
}

TEST_F(ExecutorTest, TheSameWishTwiceIsOneAct) {
  Plan plan;
  plan.lane("a").add(step("x"));
  plan.lane("b").add(step("x")).then().add(step("y"));
  run(plan);
  EXPECT_THAT(target.log, ElementsAre("+x", "+y", "-x", "-y"));
  ASSERT_EQ(results.size(), 1U);
  EXPECT_TRUE(results[0].complete);
}

TEST_F(ExecutorTest, AnActNobodyHandlesFails) {
  Plan plan;
  plan.lane("a").add({{"odd"}, "because", std::make_shared<OtherAct>()}).then().add(step("next"));
  plan.lane("b").add({{"none"}, "because", nullptr});
  run(plan);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].outcomes.at({"odd"}).error->code, core::ErrorCode::kUnsupported);
  EXPECT_EQ(results[0].outcomes.at({"none"}).error->code, core::ErrorCode::kUnsupported);
  EXPECT_FALSE(results[0].outcomes.contains({"next"}));
}

TEST_F(ExecutorTest, AnEmptyPlanIsDoneLater) {
  run(Plan{});
  ASSERT_EQ(results.size(), 1U);
  EXPECT_TRUE(results[0].complete);
}

TEST_F(ExecutorTest, ASecondAnswerIsDropped) {
  target.answer_twice = true;
  Plan plan;
  plan.lane("a").add(step("a1")).add(step("a2")).then().add(step("a3"));
  run(plan);
  EXPECT_EQ(results.size(), 1U);
}

TEST_F(ExecutorTest, NothingIsCalledAfterItsEnd) {
  Plan plan;
  plan.lane("a").add(step("a1"));
  {
    Executor executor(loop, target, limits);
    executor.run(plan, [this](PassResult result) { results.push_back(std::move(result)); });
    loop.run_ready();
  }
  loop.advance(60s);
  EXPECT_THAT(target.log, ElementsAre("+a1", "-a1"));
  EXPECT_TRUE(results.empty());
}

TEST_F(ExecutorTest, FetchGivesEveryAnswerWithTheTimeItWasAsked) {
  limits.max_in_flight = 1;
  target.errors = {{"b", error(core::ErrorCode::kNotFound)}};
  Executor executor(loop, target, limits);
  std::vector<Facts> all;
  const core::MonoTime start = loop.clock().mono();
  executor.fetch({{"one", std::make_shared<TestAct>("a")}, {"two", std::make_shared<TestAct>("b")}, {"odd", nullptr}},
                 [&](Facts facts) { all.push_back(std::move(facts)); });
  loop.advance(60s);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(*all[0].at("one").value, core::Json("a"));
  EXPECT_EQ(all[0].at("one").asked_at, start);
  EXPECT_EQ(all[0].at("two").value.error().code, core::ErrorCode::kNotFound);
  EXPECT_EQ(all[0].at("two").asked_at, start + 10ms);
  EXPECT_EQ(all[0].at("odd").value.error().code, core::ErrorCode::kUnsupported);
}

TEST_F(ExecutorTest, FetchOfNothingIsDone) {
  Executor executor(loop, target, limits);
  int calls = 0;
  executor.fetch({}, [&](const Facts& facts) { calls += facts.empty() ? 1 : 100; });
  loop.run_ready();
  EXPECT_EQ(calls, 1);
}

TEST(RouterTest, TheFirstThatHandlesGetsIt) {
  core::ManualLoop loop;
  FakeTarget first(loop), second(loop);
  Router router;
  router.add(first);
  router.add(second);
  EXPECT_TRUE(router.handles(TestAct("x")));
  EXPECT_FALSE(router.handles(OtherAct()));
  router.execute(std::make_shared<TestAct>("x"), [](const ActResult&) {});
  EXPECT_THAT(first.log, ElementsAre("+x"));
  EXPECT_TRUE(second.log.empty());
  std::optional<core::ErrorCode> code;
  router.execute(std::make_shared<OtherAct>(), [&](const ActResult& result) { code = result.value.error().code; });
  EXPECT_EQ(code, core::ErrorCode::kUnsupported);
}

// Checks the guarantees of a pass with random plans, answers and orders of the answers.
RC_GTEST_PROP(ExecutorProperty, KeepsItsPromises, ()) {
  core::ManualLoop loop;
  FakeTarget target(loop);
  Plan plan;
  struct Place {
    int lane, group;
  };
  std::map<std::string, Place> places;
  const int lanes = *rc::gen::inRange(0, 5);
  for (int l = 0; l < lanes; ++l) {
    Lane& lane = plan.lane("lane" + std::to_string(l));
    const int groups = *rc::gen::inRange(0, 4);
    for (int g = 0; g < groups; ++g) {
      const int steps = *rc::gen::inRange(0, 6);
      for (int s = 0; s < steps; ++s) {
        const std::string id = std::to_string(l) + "." + std::to_string(g) + "." + std::to_string(s);
        lane.add(step(id));
        places[id] = {l, g};
        target.delays[id] = core::Duration{*rc::gen::inRange(0, 50)};
        if (*rc::gen::inRange(0, 5) == 0) {
          target.errors[id] = error(*rc::gen::element(core::ErrorCode::kConflict, core::ErrorCode::kTooManyRequests));
        }
      }
      lane.then();
    }
  }
  PassLimits limits;
  limits.max_steps = *rc::gen::inRange<std::size_t>(1, 40);
  limits.max_in_flight = *rc::gen::inRange<std::size_t>(1, 8);
  limits.max_time = core::Duration{*rc::gen::element(20, 100, 60'000, 60'000)};

  std::vector<PassResult> results;
  Executor executor(loop, target, limits);
  executor.run(plan, [&](PassResult result) { results.push_back(std::move(result)); });
  loop.advance(60s);

  RC_ASSERT(results.size() == 1U);
  RC_ASSERT(target.in_flight == 0U);
  RC_ASSERT(target.most_in_flight <= limits.max_in_flight);
  std::map<std::string, int> started;
  std::map<int, int> lane_failed_group;           // the group in which a lane failed
  std::map<std::pair<int, int>, int> unanswered;  // steps of each group not answered yet
  for (const auto& [id, place] : places) ++unanswered[{place.lane, place.group}];
  for (const std::string& entry : target.log) {
    const std::string id = entry.substr(1);
    const Place place = places.at(id);
    if (entry[0] == '+') {
      RC_ASSERT(++started[id] == 1);
      for (int g = 0; g < place.group; ++g) RC_ASSERT((unanswered[{place.lane, g}] == 0));
      RC_ASSERT((!lane_failed_group.contains(place.lane) || lane_failed_group.at(place.lane) == place.group));
    } else {
      --unanswered[{place.lane, place.group}];
      if (target.errors.contains(id)) lane_failed_group[place.lane] = place.group;
    }
  }
  RC_ASSERT(started.size() <= limits.max_steps);
  RC_ASSERT(started.size() == results[0].outcomes.size());
  RC_ASSERT(results[0].failed == !lane_failed_group.empty());
  RC_ASSERT(results[0].complete == (started.size() == places.size()));
  for (const auto& [id, outcome] : results[0].outcomes) {
    RC_ASSERT((outcome.state == Outcome::State::kFailed) == target.errors.contains(id.verb));
  }
  // If the pass reached no limit, each lane without a failure must be complete.
  if (places.size() <= limits.max_steps && limits.max_time == core::Duration{60'000}) {
    for (const auto& [id, place] : places) RC_ASSERT((lane_failed_group.contains(place.lane) || started.contains(id)));
  }
}

}  // namespace
}  // namespace plan
