#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/testing/manual_loop.hpp"

namespace core {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

TEST(ManualLoop, CallsInOrderOfTimeThenOfAsking) {
  ManualLoop loop;
  std::vector<int> calls;
  loop.after(20ms, [&] { calls.push_back(3); });
  loop.after(10ms, [&] { calls.push_back(1); });
  loop.after(10ms, [&] { calls.push_back(2); });
  loop.run_ready();
  EXPECT_THAT(calls, ElementsAre());
  loop.advance(10ms);
  EXPECT_THAT(calls, ElementsAre(1, 2));
  EXPECT_EQ(loop.until_next(), 10ms);
  loop.advance(1000ms);
  EXPECT_THAT(calls, ElementsAre(1, 2, 3));
}

TEST(ManualLoop, TimersSeeTheirOwnTime) {
  ManualLoop loop;
  const MonoTime start = loop.clock().mono();
  std::vector<Duration> seen;
  loop.after(5ms, [&] {
    seen.push_back(loop.clock().mono() - start);
    loop.after(5ms, [&] { seen.push_back(loop.clock().mono() - start); });
  });
  loop.advance(100ms);
  EXPECT_THAT(seen, ElementsAre(5ms, 10ms));
  EXPECT_EQ(loop.clock().mono() - start, 100ms);
}

TEST(Timer, WithdrawsWhatWasSetBefore) {
  ManualLoop loop;
  std::vector<int> calls;
  {
    Timer timer(loop);
    timer.set(10ms, [&] { calls.push_back(1); });
    timer.set(20ms, [&] { calls.push_back(2); });
    loop.advance(15ms);
    EXPECT_TRUE(timer.pending());
    loop.advance(5ms);
    EXPECT_FALSE(timer.pending());
    timer.set(10ms, [&] { calls.push_back(3); });
  }
  loop.advance(100ms);
  EXPECT_THAT(calls, ElementsAre(2));
}

}  // namespace
}  // namespace core
