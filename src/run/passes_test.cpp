#include "run/passes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/fake_random.hpp"
#include "core/testing/manual_loop.hpp"

namespace run {
namespace {

using namespace std::chrono_literals;

struct TestAct final : plan::Act {
  [[nodiscard]] core::Json describe() const override { return {{"act", "test"}}; }
};

class TestGate final : public plan::Gate {
 public:
  [[nodiscard]] bool open() const override { return is_open; }
  [[nodiscard]] std::string describe() const override { return "a cache"; }
  bool is_open = false;
};

/// Answers only when the test calls answer().
class TestTarget final : public plan::Target {
 public:
  TestTarget() {
    carries_out<TestAct>([this](const auto&, Done done) { asked.push_back(std::move(done)); });
  }
  void answer(std::vector<plan::GatePtr> gates = {}) {
    const Done done = std::move(asked.front());
    asked.erase(asked.begin());
    done({core::Json::object(), std::move(gates)});
  }
  std::vector<Done> asked;
};

struct Seen {
  plan::Facts facts;
  plan::Outcomes outcomes;
};

class TestController final : public TypedController<Seen> {
 public:
  TestController() : TypedController([this](const Seen& seen) { return planner ? planner(seen) : plan::Plan(); }) {}
  [[nodiscard]] std::string name() const override { return "test"; }
  std::function<plan::Plan(const Seen&)> planner;
  int observed = 0;

 protected:
  std::shared_ptr<const Seen> observe_typed(const Key&, Recorder&, const Observation& context) override {
    ++observed;
    return std::make_shared<Seen>(Seen{context.facts, context.outcomes});
  }
};

/// One key, with the real queue, ledger, repeats, gates and executor.
class PassesTest : public testing::Test {
 protected:
  PassesTest() { passes.add(controller); }
  [[nodiscard]] std::string state() const { return std::string(to_string(passes.state(key))); }
  static plan::Plan one_step() {
    plan::Plan plan;
    plan.lane("a").add({{"do", "Thing", "a"}, "why", std::make_shared<TestAct>()});
    return plan;
  }

  const WorkKey key{0, {"ns", "a"}};
  core::ManualLoop loop;
  core::FakeRandom random;
  core::NullLogger log;
  TestTarget target;
  plan::Executor executor{loop, target};
  bool may_begin = true;
  int ended = 0;
  std::vector<std::string> waited;
  Passes passes{loop,
                random,
                log,
                executor,
                {},
                {.may_begin = [this] { return may_begin; },
                 .on_first = [](std::size_t) {},
                 .on_ended = [this] { ++ended; },
                 .on_waiting = [this](const std::string& system) { waited.push_back(system); }}};
  TestController controller;
};

TEST_F(PassesTest, APassGoesThroughItsStatesAndEnds) {
  controller.planner = [](const Seen& seen) {
    plan::Plan plan;
    if (seen.outcomes.empty()) plan = one_step();
    if (seen.facts.empty()) plan.need({"fact", std::make_shared<TestAct>()});
    for (const auto& [id, outcome] : seen.outcomes) plan.remember(id);
    return plan;
  };
  const auto gate = std::make_shared<TestGate>();
  passes.wake(key);
  EXPECT_EQ(state(), "done");
  loop.run_ready();
  EXPECT_EQ(state(), "needing");
  target.answer();
  EXPECT_EQ(state(), "planning") << "with the fact it is observed at once, and planned on another thread";
  loop.run_ready();
  EXPECT_EQ(state(), "acting");
  EXPECT_EQ(passes.under_way(), 1U);
  target.answer({gate});
  EXPECT_EQ(state(), "gated");
  EXPECT_EQ(passes.under_way(), 0U);
  passes.wake(key);
  loop.run_ready();
  EXPECT_EQ(controller.observed, 2) << "a gate holds its key";
  gate->is_open = true;
  passes.caches_changed();
  loop.run_ready();
  EXPECT_EQ(state(), "needing") << "what was done is looked at once more";
  target.answer();
  loop.run_ready();
  EXPECT_EQ(state(), "done");
  EXPECT_TRUE(passes.idle());
  EXPECT_EQ(passes.outcomes("test", key.key).size(), 1U);
}

TEST_F(PassesTest, WhatAPlanWaitsOnIsToldEachTime) {
  controller.planner = [](const Seen&) {
    plan::Plan plan;
    plan.waits_on("ns/slurm");
    return plan;
  };
  passes.wake(key);
  loop.run_ready();
  EXPECT_EQ(waited, std::vector<std::string>{"ns/slurm"}) << "also when there is nothing to do";
  passes.wake(key);
  loop.advance(1s);
  EXPECT_EQ(waited.size(), 2U);
}

TEST_F(PassesTest, NothingBeginsBeforeItMay) {
  may_begin = false;
  passes.wake(key);
  loop.run_ready();
  EXPECT_EQ(controller.observed, 0);
  may_begin = true;
  passes.pump_soon();
  loop.run_ready();
  EXPECT_EQ(controller.observed, 1);
}

TEST_F(PassesTest, AStopLetsActsEndAndBeginsNothing) {
  controller.planner = [](const Seen&) { return one_step(); };
  passes.wake(key);
  loop.run_ready();
  ASSERT_EQ(state(), "acting");
  passes.stop();
  EXPECT_EQ(ended, 0);
  EXPECT_TRUE(passes.may_still_write());
  target.answer();
  EXPECT_EQ(ended, 1);
  EXPECT_FALSE(passes.may_still_write());
  passes.wake(key);
  loop.advance(60s);
  EXPECT_EQ(controller.observed, 1);
}

TEST_F(PassesTest, AfterAStopNobodyWaitsForGates) {
  controller.planner = [](const Seen&) { return one_step(); };
  passes.wake(key);
  loop.run_ready();
  passes.stop();
  target.answer({std::make_shared<TestGate>()});
  EXPECT_EQ(state(), "done");
  EXPECT_EQ(ended, 1);
}

TEST_F(PassesTest, AStopWhileItPlansCarriesNothingOut) {
  controller.planner = [this](const Seen&) {
    passes.stop();
    return one_step();
  };
  passes.wake(key);
  loop.run_ready();
  EXPECT_EQ(state(), "done");
  EXPECT_TRUE(target.asked.empty());
  EXPECT_EQ(ended, 1);
}

TEST_F(PassesTest, AStopLetsGoOfWhatOnlyWaits) {
  controller.planner = [](const Seen&) { return one_step(); };
  passes.wake(key);
  loop.run_ready();
  target.answer({std::make_shared<TestGate>()});
  ASSERT_EQ(state(), "gated");
  passes.stop();
  EXPECT_EQ(state(), "done");
  EXPECT_FALSE(passes.may_still_write()) << "its write was answered";
}

TEST_F(PassesTest, WhatMayStillBeWrittenIsKnownAfterAStop) {
  controller.planner = [](const Seen&) { return one_step(); };
  passes.wake(key);
  loop.run_ready();
  const auto done = std::move(target.asked.front());
  done({core::fail(core::ErrorCode::kUnknownOutcome, "lost"), {std::make_shared<TestGate>()}});
  ASSERT_EQ(state(), "gated");
  passes.stop();
  EXPECT_TRUE(passes.may_still_write());
}

}  // namespace
}  // namespace run
