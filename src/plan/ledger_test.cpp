#include "plan/ledger.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plan {
namespace {

using ::testing::ElementsAre;
using ::testing::Key;

const StepId kPod{"create", "Pod", "cpu-0"};
const StepId kOther{"create", "Pod", "cpu-1"};

core::MonoTime at(int seconds) {
  return core::MonoTime{core::Duration{1000 * seconds}};
}
core::Result<void> refusal(const char* text) {
  return core::fail(core::ErrorCode::kForbidden, text);
}

TEST(Ledger, TheSameEndCountsUpAndAnotherBeginsAnew) {
  Ledger ledger;
  ledger.add({{kPod, tried(refusal("one"), at(1))}});
  ledger.add({{kPod, tried(refusal("two"), at(2))}});
  const Outcome& failed = ledger.outcomes().at(kPod);
  EXPECT_EQ(failed.state, Outcome::State::kFailed);
  EXPECT_EQ(failed.count, 2);
  EXPECT_EQ(failed.since, at(1));
  EXPECT_EQ(failed.last, at(2));
  EXPECT_EQ(failed.error->message, "two");
  ledger.add({{kPod, tried({}, at(3))}});
  const Outcome& done = ledger.outcomes().at(kPod);
  EXPECT_EQ(done.state, Outcome::State::kDone);
  EXPECT_EQ(done.count, 1);
  EXPECT_EQ(done.since, at(3));
  EXPECT_FALSE(done.error);
}

TEST(Ledger, KeepsWhatAPlanHasOrRemembers) {
  Ledger ledger;
  ledger.add({{kPod, tried({}, at(1))}, {kOther, tried({}, at(1))}, {{"status"}, tried({}, at(1))}});
  Plan made;
  made.lane("create").then().add({kPod, "wanted", nullptr});
  made.remember({"status"});
  ledger.keep(made);
  EXPECT_THAT(ledger.outcomes(), ElementsAre(Key(kPod), Key(StepId{"status"})));
  ledger.keep(Plan{});
  EXPECT_TRUE(ledger.outcomes().empty());
}

TEST(OpenNeeds, AreThoseWithoutAnAnswer) {
  Plan made;
  made.need({"pod", nullptr});
  made.need({"node", nullptr});
  const Facts known{{"pod", Fact{core::Json(), at(1)}}};
  const std::vector<Need> open = open_needs(made, known);
  ASSERT_EQ(open.size(), 1U);
  EXPECT_EQ(open.front().id, "node");
}

}  // namespace
}  // namespace plan
