// Uses real threads and short real times, because these are under test.
#include "net/asio_loop.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <thread>
#include <vector>

namespace net {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

TEST(AsioLoop, CallsInOrderAndNeverFromInsideAfter) {
  AsioLoop loop;
  std::vector<int> calls;
  loop.after(20ms, [&] {
    calls.push_back(3);
    loop.stop();
  });
  loop.after(0ms, [&] { calls.push_back(1); });
  loop.after(0ms, [&] { calls.push_back(2); });
  const auto withdrawn = loop.after(0ms, [&] { calls.push_back(99); });
  const auto later = loop.after(5ms, [&] { calls.push_back(99); });
  loop.cancel(withdrawn);
  loop.cancel(later);
  loop.cancel(0);
  EXPECT_THAT(calls, ElementsAre());
  loop.run();
  EXPECT_THAT(calls, ElementsAre(1, 2, 3));
}

TEST(AsioLoop, OffloadedWorkRunsElsewhereAndItsEndOnTheLoop) {
  AsioLoop loop(2);
  std::thread::id worker, end;
  loop.offload([&] { worker = std::this_thread::get_id(); },
               [&] {
                 end = std::this_thread::get_id();
                 loop.stop();
               });
  loop.run();
  EXPECT_EQ(end, std::this_thread::get_id());
  EXPECT_NE(worker, end);
  EXPECT_NE(worker, std::thread::id());
}

TEST(AsioLoop, PostComesFromAnyThread) {
  AsioLoop loop;
  int calls = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        loop.post([&] {
          if (++calls == 400) loop.stop();
        });
      }
    });
  }
  loop.run();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(calls, 400);
}

TEST(AsioLoop, SignalsAreTold) {
  AsioLoop loop;
  std::vector<int> signals;
  loop.on_signals([&](int number) {
    signals.push_back(number);
    if (signals.size() == 2) return loop.stop();
    std::raise(SIGINT);
  });
  loop.after(0ms, [] { std::raise(SIGTERM); });
  loop.run();
  EXPECT_THAT(signals, ElementsAre(SIGTERM, SIGINT));
}

TEST(AsioLoop, MayGoWithCallsWaiting) {
  struct Owner {
    explicit Owner(core::Loop& loop) : timer(loop) {
      timer.set(1h, [] {});
    }
    core::Timer timer;
  };
  auto loop = std::make_unique<AsioLoop>();
  auto owner = std::make_shared<Owner>(*loop);
  loop->after(1h, [owner] {});
  loop->post([owner] {});
  owner.reset();
  loop.reset();  // destroying the callbacks cancels the timers that they own
}

}  // namespace
}  // namespace net
