#include "run/repeats.hpp"

#include <gtest/gtest.h>

namespace run {
namespace {

using namespace std::chrono_literals;
using core::Json;

struct Act final : plan::Act {
  Act(Json of, Withhold longest) : what(std::move(of)), longest_wait(longest) {}
  Json what;
  Withhold longest_wait;
  [[nodiscard]] Json describe() const override { return what; }
  [[nodiscard]] Withhold withhold() const override { return longest_wait; }
};

plan::Step status(Json what, std::string version = "1") {
  return {{"status"},
          "",
          std::make_shared<Act>(Json{{"status", std::move(what)}, {"resourceVersion", std::move(version)}},
                                plan::Act::Withhold::kLong)};
}

plan::Step delete_by_uid(std::string uid) {
  return {{"delete", "ConfigMap", "ns/cpu-0"},
          "",
          std::make_shared<Act>(Json{{"uid", std::move(uid)}}, plan::Act::Withhold::kBriefly)};
}

class RepeatsTest : public testing::Test {
 protected:
  /// Reports whether the step is withheld after it has run once more.
  bool done(const plan::Step& step, core::Duration after = 10ms) {
    now = now + after;
    return repeats.done(step, now);
  }
  [[nodiscard]] core::Duration left(const plan::Step& step) const {
    const auto until = repeats.withheld_until(step, now);
    return until ? *until - now : 0ms;
  }
  core::MonoTime now;
  Repeats repeats;
};

TEST_F(RepeatsTest, TheFifthWithinAMinuteIsWithheldAndToldOnce) {
  for (int i = 1; i <= 4; ++i) {
    EXPECT_FALSE(done(status(i % 2), 10s)) << "something else each time";
  }
  for (int i = 1; i <= 4; ++i) {
    EXPECT_FALSE(done(status("x"), 10s));
    EXPECT_EQ(left(status("x")), 0ms);
  }
  EXPECT_TRUE(done(status("x"), 10s));
  EXPECT_EQ(left(status("x")), 1s);
  EXPECT_EQ(left(status("y")), 0ms) << "what changes is never withheld";
  now = now + 1s;
  EXPECT_EQ(left(status("x")), 0ms);
}

TEST_F(RepeatsTest, ItIsWithheldTwiceAsLongEachTimeUpToFiveMinutes) {
  for (int i = 1; i < 5; ++i) EXPECT_FALSE(done(status("x")));
  EXPECT_TRUE(done(status("x")));
  for (const core::Duration next : {2s, 4s, 8s, 16s, 32s, 64s, 128s, 256s, 300s, 300s}) {
    EXPECT_FALSE(done(status("x"), left(status("x")))) << "told once";
    EXPECT_EQ(left(status("x")), next);
  }
  for (int i = 0; i < 100; ++i) done(status("x"), 300s);
  EXPECT_EQ(left(status("x")), 300s);
  done(status("y"));
  EXPECT_EQ(left(status("x")), 0ms) << "no longer in a row";
}

TEST_F(RepeatsTest, WhatIsDoneNowAndThenIsNot) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(done(status("x"), 16s));
    EXPECT_EQ(left(status("x")), 0ms);
  }
}

TEST_F(RepeatsTest, TimesAndVersionsAreNoDifference) {
  const auto condition = [](const std::string& since) {
    return Json{{"conditions", {{{"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", since}}}}};
  };
  for (int i = 1; i <= 5; ++i) {
    const std::string n = std::to_string(i);
    EXPECT_EQ(done(status(condition("2026-01-01T00:00:0" + n + "Z"), n)), i == 5);
  }
}

TEST_F(RepeatsTest, AnotherObjectIsADifference) {
  for (int i = 1; i <= 20; ++i) EXPECT_FALSE(done(delete_by_uid("u" + std::to_string(i))));
  for (int i = 1; i <= 5; ++i) EXPECT_EQ(done(delete_by_uid("u")), i == 5);
  EXPECT_EQ(left(delete_by_uid("u")), 1s);
  EXPECT_EQ(left(delete_by_uid("v")), 0ms);
}

TEST_F(RepeatsTest, VariantsOfAWishAreOneWish) {
  const auto told = [](const std::string& what) {
    plan::Step step = status(what);
    step.id.variant = what;
    return step;
  };
  for (int i = 1; i <= 20; ++i) {
    EXPECT_FALSE(done(told("Ready=False"))) << "a state that comes and goes is told each time";
    EXPECT_FALSE(done(told("Ready=True")));
  }
}

TEST_F(RepeatsTest, WhatUsersMayAskForInTurnWaitsTenSecondsAtMost) {
  for (int i = 1; i <= 20; ++i) done(delete_by_uid("u"));
  EXPECT_EQ(left(delete_by_uid("u")), 10s);
}

TEST_F(RepeatsTest, WishesOfOtherNamesDoNotStandInForEachOther) {
  // There are drains with two reasons. Something undoes one of them again and again.
  const auto drain = [](const std::string& reason) {
    plan::Step step = status(reason);
    step.id = {"drain", "with reason", reason};
    return step;
  };
  for (int i = 1; i <= 5; ++i) {
    EXPECT_FALSE(done(drain("another " + std::to_string(i))));
    done(drain("one"));
  }
  EXPECT_EQ(left(drain("one")), 1s);
}

TEST_F(RepeatsTest, WhatNeverWaitsIsNeverWithheld) {
  const plan::Step step{{"add finalizer"}, "", std::make_shared<Act>(Json(), plan::Act::Withhold::kNever)};
  for (int i = 1; i <= 20; ++i) done(step);
  EXPECT_EQ(left(step), 0ms);
}

TEST_F(RepeatsTest, WhatIsNotRepeatedIsForgotten) {
  done(delete_by_uid("u"));
  for (int i = 1; i <= 5; ++i) done(status("x"));
  now = now + 61s;
  repeats.forget(now);
  EXPECT_EQ(repeats.size(), 1U);
  now = now + 530s;
  repeats.forget(now);
  EXPECT_EQ(repeats.size(), 1U);
  now = now + 10s;
  repeats.forget(now);
  EXPECT_EQ(repeats.size(), 0U);
  for (int i = 1; i <= 5; ++i) EXPECT_EQ(done(status("x")), i == 5);
}

}  // namespace
}  // namespace run
