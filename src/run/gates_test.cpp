#include "run/gates.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/manual_loop.hpp"

namespace run {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

class TestGate final : public plan::Gate {
 public:
  [[nodiscard]] bool open() const override {
    ++asked;
    return is_open;
  }
  [[nodiscard]] std::string describe() const override { return "a snapshot"; }
  bool is_open = false;
  mutable int asked = 0;
};

class SettledGate final : public plan::Gate {
 public:
  [[nodiscard]] bool open() const override { return is_open; }
  [[nodiscard]] std::string describe() const override { return "Pod ns/a"; }
  [[nodiscard]] bool settle() const override {
    ++settled;
    return true;
  }
  bool is_open = false;
  mutable int settled = 0;
};

class GatesTest : public testing::Test {
 protected:
  PassPtr hold(std::string name, std::vector<plan::GatePtr> closed) {
    auto pass = std::make_shared<Pass>();
    pass->key = {0, {"ns", std::move(name)}};
    pass->controller = "test";
    pass->gates = std::move(closed);
    gates.hold(pass);
    return pass;
  }

  core::ManualLoop loop;
  core::NullLogger log;
  std::vector<std::string> opened;
  Gates gates{loop, log, 30s, [this](const PassPtr& pass) {
                EXPECT_FALSE(gates.holds(pass->key));
                opened.push_back(pass->key.key.name);
              }};
};

TEST_F(GatesTest, GatesThatAreOpenAlreadyNeedNoWait) {
  const auto open = std::make_shared<TestGate>();
  const auto closed = std::make_shared<TestGate>();
  open->is_open = true;
  Pass pass;
  pass.gates = {open, nullptr, closed};
  EXPECT_FALSE(Gates::all_open(pass));
  EXPECT_THAT(pass.gates, ElementsAre(closed));
  closed->is_open = true;
  EXPECT_TRUE(Gates::all_open(pass));
}

/// If n passes are held, n changes of a cache must not cost n² checks of a gate.
TEST_F(GatesTest, ManyChangesCheckManyPassesOnceInAWhile) {
  std::vector<std::shared_ptr<TestGate>> all;
  for (int i = 0; i < 1000; ++i) {
    all.push_back(std::make_shared<TestGate>());
    hold(std::to_string(i), {all.back()});
  }
  for (const auto& gate : all) {
    gate->is_open = true;
    gates.check();
  }
  EXPECT_THAT(opened, testing::SizeIs(1));
  EXPECT_EQ(all.back()->asked, 1);
  loop.advance(50ms);
  EXPECT_THAT(opened, testing::SizeIs(1000));
  EXPECT_EQ(all.back()->asked, 2);
}

TEST_F(GatesTest, APassIsHeldUntilItsLastGateOpens) {
  const auto one = std::make_shared<TestGate>();
  const auto two = std::make_shared<TestGate>();
  const PassPtr pass = hold("a", {one, two});
  EXPECT_TRUE(gates.holds(pass->key));
  EXPECT_THAT(gates.describe(), ElementsAre("test ns/a: a snapshot", "test ns/a: a snapshot"));
  two->is_open = true;
  gates.check();
  EXPECT_THAT(opened, IsEmpty());
  EXPECT_THAT(gates.describe(), ElementsAre("test ns/a: a snapshot"));
  one->is_open = true;
  gates.check();
  EXPECT_THAT(opened, ElementsAre("a"));
}

TEST_F(GatesTest, OneClosedGateIsEnoughToAsk) {
  const auto one = std::make_shared<TestGate>();
  const auto two = std::make_shared<TestGate>();
  hold("a", {one, two});
  gates.check();
  EXPECT_EQ(two->asked, 1);
  EXPECT_EQ(one->asked, 0);
}

TEST_F(GatesTest, GatesAreLookedAtOnceASecondWhenNoCacheChanges) {
  const auto gate = std::make_shared<TestGate>();
  hold("a", {gate});
  gate->is_open = true;
  loop.advance(999ms);
  EXPECT_THAT(opened, IsEmpty());
  loop.advance(1ms);
  EXPECT_THAT(opened, ElementsAre("a"));
  loop.advance(1s);
  EXPECT_EQ(loop.pending(), 0U) << "nothing is held: nothing runs";
}

TEST_F(GatesTest, AGateThatCanBeSettledStaysClosedUntilItOpens) {
  const auto gate = std::make_shared<SettledGate>();
  const PassPtr pass = hold("a", {gate});
  loop.advance(29s);
  EXPECT_EQ(gate->settled, 0);
  EXPECT_FALSE(pass->settled_live);
  loop.advance(1s);
  EXPECT_EQ(gate->settled, 1);
  EXPECT_TRUE(pass->settled_live);
  loop.advance(29s);
  EXPECT_EQ(gate->settled, 1);
  loop.advance(1s);
  EXPECT_EQ(gate->settled, 2) << "the caches are still slow: it is read again";
  EXPECT_TRUE(gates.holds(pass->key));
}

TEST_F(GatesTest, AnyOtherGateThatStaysClosedIsGivenUp) {
  const auto gate = std::make_shared<TestGate>();
  const PassPtr pass = hold("a", {gate});
  loop.advance(30s);
  EXPECT_THAT(opened, ElementsAre("a"));
  EXPECT_TRUE(pass->settled_live);
}

TEST_F(GatesTest, WhatIsDroppedIsNeverOpened) {
  const auto gate = std::make_shared<TestGate>();
  const PassPtr pass = hold("a", {gate});
  EXPECT_THAT(gates.drop_all(), ElementsAre(pass));
  EXPECT_FALSE(gates.holds(pass->key));
  gate->is_open = true;
  loop.advance(60s);
  EXPECT_THAT(opened, IsEmpty());
}

}  // namespace
}  // namespace run
