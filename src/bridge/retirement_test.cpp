#include "bridge/retirement.hpp"

#include <gtest/gtest.h>

#include "core/testing/manual_loop.hpp"

namespace bridge {
namespace {

TEST(RetirementTest, EndsWhenNothingHasBeenLeftThreeTimes) {
  core::ManualLoop loop;
  core::NullLogger log;
  std::optional<std::vector<std::string>> left{{"pod ns/p"}};
  int done = 0;
  Retirement retirement(
      loop, log, [&] { return left; }, [&] { ++done; });
  retirement.start();
  const auto after = [&](int seconds) {
    loop.advance(core::Duration{1000 * seconds});
    return done;
  };
  EXPECT_EQ(after(600), 0);
  left->clear();
  EXPECT_EQ(after(4), 0);
  left.reset();
  EXPECT_EQ(after(600), 0) << "unknown is not empty";
  left.emplace();
  EXPECT_EQ(after(4), 0);
  EXPECT_EQ(after(2), 1);
  EXPECT_EQ(after(600), 1);
}

}  // namespace
}  // namespace bridge
