#include "sim/base/loop.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace sim {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<int> order(std::uint64_t seed) {
  SimLoop loop(seed);
  std::vector<int> calls;
  for (int i = 0; i < 5; ++i) loop.after(10ms, [&calls, i] { calls.push_back(i); });
  loop.after(5ms, [&calls] { calls.push_back(99); });
  loop.run_for(10ms);
  return calls;
}

TEST(SimLoop, VariesTheOrderOfWhatIsDueAndNothingElse) {
  std::set<std::vector<int>> seen;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<int> calls = order(seed);
    ASSERT_EQ(calls.size(), 6U);
    EXPECT_EQ(calls.front(), 99) << "earlier comes earlier";
    EXPECT_EQ(calls, order(seed));
    seen.insert(calls);
  }
  EXPECT_GT(seen.size(), 20U);
}

TEST(SimLoop, TimeStandsStillUntilSomethingIsDue) {
  SimLoop loop(1);
  const core::MonoTime start = loop.clock().mono();
  std::vector<core::Duration> at;
  loop.after(50ms, [&] { at.push_back(loop.clock().mono() - start); });
  const auto withdrawn = loop.after(60ms, [&] { at.push_back(0ms); });
  loop.cancel(withdrawn);
  loop.after(70ms, [&] { at.push_back(loop.clock().mono() - start); });
  EXPECT_TRUE(loop.run_until([&] { return at.size() == 1; }, 1s));
  EXPECT_EQ(loop.clock().mono() - start, 50ms);
  EXPECT_FALSE(loop.run_until([&] { return at.size() == 5; }, 1s));
  EXPECT_THAT(at, ElementsAre(50ms, 70ms));
  EXPECT_EQ(loop.clock().mono() - start, 1050ms);
  EXPECT_FALSE(loop.step());
}

TEST(SimLoop, ADelayOfZeroIsStillLater) {
  SimLoop loop(1);
  std::vector<int> calls;
  loop.after(0ms, [&] {
    loop.after(0ms, [&] { calls.push_back(2); });
    calls.push_back(1);
  });
  EXPECT_THAT(calls, IsEmpty());
  loop.run_for(0ms);
  EXPECT_THAT(calls, ElementsAre(1, 2));
}

TEST(SimHost, DiesWithAllThatItWaitedFor) {
  SimLoop loop(1);
  std::vector<int> calls;
  {
    SimHost host(loop);
    host.after(1ms, [&] { calls.push_back(1); });
    host.after(10ms, [&] { calls.push_back(2); });
    host.offload([&] { calls.push_back(3); }, [&] { calls.push_back(4); });
    loop.run_for(5ms);
  }
  loop.run_for(1s);
  EXPECT_THAT(calls, testing::UnorderedElementsAre(1, 3, 4));
}

TEST(SimHost, AStoppedProcessCatchesUpLater) {
  SimLoop loop(1);
  SimHost host(loop);
  std::vector<int> calls;
  host.after(1ms, [&] { calls.push_back(1); });
  const auto withdrawn = host.after(2ms, [&] { calls.push_back(2); });
  host.pause();
  loop.run_for(1s);
  EXPECT_THAT(calls, IsEmpty());
  const auto late = host.after(3ms, [&] { calls.push_back(3); });
  loop.run_for(1s);
  host.cancel(withdrawn);
  host.resume();
  host.cancel(late);  // the timer has the same id after the pause
  loop.run_for(0ms);
  EXPECT_THAT(calls, ElementsAre(1));
}

TEST(SimHost, ItsCivilTimeMayBeOff) {
  SimLoop loop(1);
  SimHost host(loop);
  host.jump(-3600s);
  EXPECT_EQ(loop.clock().wall() - host.clock().wall(), core::Duration{3600s});
  EXPECT_EQ(loop.clock().mono(), host.clock().mono());
}

}  // namespace
}  // namespace sim
