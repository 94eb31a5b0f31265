#include "run/queue.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/testing/fake_random.hpp"

namespace run {
namespace {

using namespace std::chrono_literals;

WorkKey key(int n) {
  return {0, {"ns", "k" + std::to_string(n)}};
}
core::MonoTime at(core::Duration d) {
  return {d};
}

class QueueTest : public testing::Test {
 protected:
  core::FakeRandom random;
  WorkQueue queue{random};
};

TEST_F(QueueTest, GivesKeysInTheOrderInWhichTheyBecameReady) {
  queue.add(key(1), at(10ms));
  queue.add(key(2), at(11ms));
  queue.add(key(1), at(12ms));
  EXPECT_EQ(queue.pop(at(12ms)), key(1));
  EXPECT_EQ(queue.pop(at(12ms)), key(2));
  EXPECT_EQ(queue.pop(at(12ms)), std::nullopt);
}

TEST_F(QueueTest, AKeyIsNeverProcessedTwiceAtOnce) {
  queue.add(key(1), at(0ms));
  ASSERT_EQ(queue.pop(at(0ms)), key(1));
  queue.add(key(1), at(1ms));
  EXPECT_EQ(queue.pop(at(2ms)), std::nullopt);
  queue.done(key(1), at(3ms));
  EXPECT_EQ(queue.pop(at(3ms)), key(1));
  queue.done(key(1), at(4ms));
  EXPECT_EQ(queue.pop(at(4ms)), std::nullopt);
}

TEST_F(QueueTest, OfTwoDelaysTheShorterWins) {
  queue.add_after(key(1), 100ms, at(0ms));
  queue.add_after(key(1), 50ms, at(0ms));
  queue.add_after(key(1), 200ms, at(0ms));
  EXPECT_EQ(queue.next_due(), at(50ms));
  EXPECT_EQ(queue.pop(at(49ms)), std::nullopt);
  EXPECT_EQ(queue.pop(at(50ms)), key(1));
  EXPECT_EQ(queue.last_wait(), 0ms);
  queue.done(key(1), at(51ms));
  EXPECT_EQ(queue.depth(), 0U);
}

TEST_F(QueueTest, ADelayedKeyThatIsAddedIsReadyAtOnce) {
  queue.add_after(key(1), 10s, at(0ms));
  queue.add(key(1), at(5ms));
  EXPECT_EQ(queue.pop(at(5ms)), key(1));
  queue.done(key(1), at(5ms));
  EXPECT_EQ(queue.pop(at(20s)), std::nullopt);
}

TEST_F(QueueTest, ADelayWishedDuringProcessingCountsFromTheWish) {
  queue.add(key(1), at(0ms));
  ASSERT_TRUE(queue.pop(at(0ms)));
  queue.add_after(key(1), 100ms, at(10ms));
  queue.done(key(1), at(50ms));
  EXPECT_EQ(queue.pop(at(109ms)), std::nullopt);
  EXPECT_EQ(queue.pop(at(110ms)), key(1));
}

TEST(QueueShares, AreTakenInTheOrderOfTheirKeysIfTheyMay) {
  core::FakeRandom random;
  std::string share_of_third = "slow";
  WorkQueue queue(random, {}, [&](const WorkKey& of) { return of == key(3) ? share_of_third : of == key(2) ? "" : "slow"; });
  for (int n = 1; n <= 3; ++n) queue.add(key(n), at(0ms));
  const auto not_slow = [](const std::string& share) { return share != "slow"; };
  EXPECT_EQ(queue.pop(at(0ms), not_slow), key(2));
  EXPECT_EQ(queue.pop(at(0ms), not_slow), std::nullopt);
  share_of_third = "";
  queue.add(key(3), at(1ms));
  EXPECT_EQ(queue.pop(at(1ms), not_slow), key(3)) << "its share has changed";
  EXPECT_EQ(queue.pop(at(1ms), not_slow), std::nullopt);
  EXPECT_EQ(queue.pop(at(1ms)), key(1));
  EXPECT_FALSE(queue.has_ready(at(1ms)));
}

TEST_F(QueueTest, HigherPriorityFirstButNobodyStarves) {
  queue.add(key(1), at(0ms), -100);
  queue.add(key(2), at(5s));
  EXPECT_EQ(queue.pop(at(5s)), key(2));
  queue.add(key(3), at(10001ms));
  EXPECT_EQ(queue.pop(at(10001ms)), key(1));
}

TEST_F(QueueTest, BackoffDoublesUpToACapAndStartsAnewAfterSuccess) {
  const core::Duration cap = QueueOptions{}.backoff_cap;
  core::Duration expected = QueueOptions{}.backoff_base;
  for (int i = 0; i < 40; ++i) {
    const core::Duration delay = queue.add_backoff(key(1), at(0ms));
    EXPECT_GE(delay, expected * 3 / 4 - 1ms);
    EXPECT_LE(delay, expected * 5 / 4);
    expected = std::min(expected * 2, cap);
  }
  EXPECT_EQ(queue.failures(key(1)), 40);
  queue.forget(key(1));
  EXPECT_LE(queue.add_backoff(key(1), at(0ms)), QueueOptions{}.backoff_base * 5 / 4);
  EXPECT_GE(queue.add_backoff(key(2), at(0ms), 7s), 7s);
}

TEST_F(QueueTest, CountsWhatIsDueAndHowOftenAKeyCameToBe) {
  const auto due = [&](core::Duration now) { return queue.counts(0, at(now)).due; };
  const auto adds = [&] { return queue.counts(0, at(0ms)).adds; };
  for (int i = 0; i < 5; ++i) queue.add(key(1), at(0ms));
  EXPECT_EQ(adds(), 1U) << "it stands there once";
  EXPECT_EQ(due(0ms), 1U);
  ASSERT_TRUE(queue.pop(at(0ms)));
  EXPECT_EQ(due(0ms), 0U);
  queue.add(key(1), at(1ms));
  queue.add(key(1), at(1ms));
  EXPECT_EQ(adds(), 2U) << "it is to run again";
  EXPECT_EQ(due(1ms), 1U);
  queue.done(key(1), at(2ms));
  EXPECT_EQ(adds(), 2U);
  ASSERT_TRUE(queue.pop(at(2ms)));
  queue.done(key(1), at(2ms));

  queue.add_after(key(2), 10s, at(2ms));
  EXPECT_EQ(adds(), 2U) << "not yet";
  EXPECT_EQ(due(2ms), 0U);
  queue.add_backoff(key(1), at(2ms));
  EXPECT_EQ(adds(), 2U);
  ASSERT_EQ(queue.pop(at(1s)), key(1));
  EXPECT_EQ(adds(), 3U) << "the delay is over";
  EXPECT_EQ(due(10002ms), 1U);
  queue.add(key(2), at(1s));
  EXPECT_EQ(adds(), 4U) << "an add ends the delay";
  queue.add({1, {"ns", "k"}}, at(1s));
  EXPECT_EQ(adds(), 4U) << "of another controller";
  EXPECT_EQ(due(1s), 1U);
  EXPECT_EQ(queue.counts(1, at(1s)).adds, 1U);
}

/// Compares with a model: whatever happens to the queue, no key is lost, no key runs early, and no key is processed twice at
/// once.
RC_GTEST_PROP(QueueProperty, LosesNothingAndKeepsOrder, ()) {
  core::FakeRandom random;
  WorkQueue queue(random);
  core::MonoTime now{};
  std::map<WorkKey, core::MonoTime> wanted;  // The earliest time requested.
  std::set<WorkKey> processing;
  const auto steps = *rc::gen::inRange(1, 200);
  for (int i = 0; i < steps; ++i) {
    const WorkKey k = key(*rc::gen::inRange(0, 5));
    switch (*rc::gen::inRange(0, 4)) {
      case 0: {
        const core::Duration delay{*rc::gen::element(0, 0, 10, 50)};
        queue.add_after(k, delay, now, *rc::gen::inRange(-2, 3));
        const auto [it, fresh] = wanted.emplace(k, now + delay);
        if (!fresh) it->second = std::min(it->second, now + delay);
        break;
      }
      case 1: {
        const auto popped = queue.pop(now);
        if (popped) {
          RC_ASSERT(!processing.contains(*popped));
          RC_ASSERT(wanted.contains(*popped));
          RC_ASSERT(wanted.at(*popped) <= now);
          wanted.erase(*popped);
          processing.insert(*popped);
        } else {
          for (const auto& [w, due] : wanted) RC_ASSERT(due > now || processing.contains(w));
        }
        break;
      }
      case 2:
        queue.done(k, now);
        processing.erase(k);
        break;
      default:
        now = now + core::Duration{*rc::gen::inRange(0, 40)};
    }
    RC_ASSERT(queue.depth() == wanted.size());
    RC_ASSERT(queue.processing() == processing.size());
  }
  // In the end every requested key is popped.
  for (const WorkKey& k : processing) queue.done(k, now);
  now = now + 1000ms;
  std::size_t left = wanted.size();
  while (const auto popped = queue.pop(now)) {
    RC_ASSERT(wanted.erase(*popped) == 1);
    --left;
  }
  RC_ASSERT(left == 0U);
}

}  // namespace
}  // namespace run
