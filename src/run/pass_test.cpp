#include "run/pass.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

namespace run {
namespace {

using State = PassState;

const std::vector<State> kStates = {State::kObserving, State::kPlanning, State::kNeeding,
                                    State::kActing,    State::kGated,    State::kDone};

TEST(Pass, HasTheTransitionsOfItsHeaderAndNoOthers) {
  const std::set<std::pair<State, State>> listed = {
      {State::kObserving, State::kPlanning}, {State::kObserving, State::kDone}, {State::kPlanning, State::kNeeding},
      {State::kPlanning, State::kActing},    {State::kPlanning, State::kDone},  {State::kNeeding, State::kObserving},
      {State::kActing, State::kGated},       {State::kActing, State::kDone},    {State::kGated, State::kDone}};
  for (const State from : kStates) {
    for (const State to : kStates) {
      EXPECT_EQ(may_follow(from, to), listed.contains({from, to})) << to_string(from) << " -> " << to_string(to);
    }
  }
}

TEST(Pass, RefusesAnyOtherTransition) {
  Pass pass;
  pass.key.key = {"ns", "a"};
  EXPECT_EQ(pass.state(), State::kObserving);
  EXPECT_THROW(pass.move_to(State::kActing), std::logic_error);
  EXPECT_EQ(pass.state(), State::kObserving);
  pass.move_to(State::kPlanning);
  EXPECT_EQ(pass.state(), State::kPlanning);
}

TEST(Pass, EveryStateHasItsOwnName) {
  std::set<std::string_view> names;
  for (const State state : kStates) names.insert(to_string(state));
  EXPECT_EQ(names.size(), kStates.size());
}

TEST(Pass, StepsThatWereTriedAreCountedWithoutThoseThatNobodyWaitsFor) {
  struct Act : plan::Act {
    [[nodiscard]] core::Json describe() const override { return {}; }
  };
  struct Event final : Act {
    [[nodiscard]] bool incidental() const override { return true; }
  };
  Pass pass;
  pass.plan.lane("a").add({{"create", "Service", "ns/a"}, "why", std::make_shared<Act>()});
  pass.plan.lane("a").add({{"create", "Service", "ns/b"}, "why", std::make_shared<Act>()});
  pass.plan.lane("a").add({{"event"}, "why", std::make_shared<Event>()});
  pass.result.outcomes[{"create", "Service", "ns/b"}] = {};
  pass.result.outcomes[{"event"}] = {};
  ASSERT_EQ(pass.tried().size(), 1U);
  EXPECT_EQ(pass.tried()[0]->id.name, "ns/b");
}

TEST(Pass, MayStillWriteWhileTheGateOfALostReplyIsClosed) {
  class Closed final : public plan::Gate {
   public:
    [[nodiscard]] bool open() const override { return false; }
    [[nodiscard]] std::string describe() const override { return ""; }
  };
  Pass pass;
  plan::Outcome& outcome = pass.result.outcomes[{"create"}];
  outcome.error = core::Error{core::ErrorCode::kUnknownOutcome, "", 0, {}, {}};
  EXPECT_FALSE(pass.may_still_write()) << "no gate waits for it: it is settled";
  pass.gates.push_back(std::make_shared<Closed>());
  EXPECT_TRUE(pass.may_still_write());
  outcome.error->code = core::ErrorCode::kConflict;
  EXPECT_FALSE(pass.may_still_write()) << "that one was refused";
}

}  // namespace
}  // namespace run
