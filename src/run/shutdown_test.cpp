#include "run/shutdown.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/testing/manual_loop.hpp"

namespace run {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using State = Shutdown::State;

class ShutdownTest : public testing::Test {
 protected:
  void begin() {
    shutdown.begin([this] { steps.emplace_back("done"); });
  }

  core::ManualLoop loop;
  core::NullLogger log;
  std::size_t passes = 0;
  std::vector<std::string> steps;
  std::function<void()> events_sent, lease_given_up;
  Shutdown shutdown{loop,
                    log,
                    10s,
                    {.passes = [this] { return passes; },
                     .stop_watches = [this] { steps.emplace_back("watches"); },
                     .send_events =
                         [this](std::function<void()> done) {
                           steps.emplace_back("events");
                           events_sent = std::move(done);
                         },
                     .give_up_lease =
                         [this](std::function<void()> done) {
                           steps.emplace_back("lease");
                           lease_given_up = std::move(done);
                         }}};
};

TEST_F(ShutdownTest, EachStepWaitsForTheOneBefore) {
  EXPECT_FALSE(shutdown.begun());
  passes = 2;
  begin();
  EXPECT_TRUE(shutdown.begun());
  passes = 1;
  shutdown.pass_ended();
  loop.advance(1s);
  EXPECT_THAT(steps, IsEmpty());
  EXPECT_EQ(shutdown.state(), State::kEndingPasses);
  passes = 0;
  shutdown.pass_ended();
  EXPECT_THAT(steps, ElementsAre("watches")) << "this may be called from a pass of the executor";
  loop.advance(20s);
  EXPECT_THAT(steps, ElementsAre("watches", "events"));
  EXPECT_EQ(shutdown.state(), State::kClosing);
  events_sent();
  EXPECT_THAT(steps, ElementsAre("watches", "events", "lease"));
  lease_given_up();
  EXPECT_THAT(steps, ElementsAre("watches", "events", "lease", "done"));
  EXPECT_EQ(shutdown.state(), State::kEnded);
}

TEST_F(ShutdownTest, PassesThatDoNotEndAreNotWaitedFor) {
  passes = 1;
  begin();
  loop.advance(9999ms);
  EXPECT_THAT(steps, IsEmpty());
  loop.advance(1ms);
  EXPECT_THAT(steps, ElementsAre("watches", "events"));
  passes = 0;
  shutdown.pass_ended();
  loop.run_ready();
  EXPECT_THAT(steps, ElementsAre("watches", "events")) << "once is enough";
}

TEST_F(ShutdownTest, APassThatEndsWhileAllRunsIsNoEnd) {
  shutdown.pass_ended();
  loop.run_ready();
  EXPECT_THAT(steps, IsEmpty());
}

TEST_F(ShutdownTest, ALostLeaseEndsWithItsLastPassWithoutAGrace) {
  passes = 1;
  shutdown.lease_lost();
  EXPECT_TRUE(shutdown.begun());
  loop.advance(60s);
  EXPECT_THAT(steps, IsEmpty());
  passes = 0;
  shutdown.pass_ended();
  EXPECT_THAT(steps, ElementsAre("watches"));
}

TEST_F(ShutdownTest, WhoBeginsAfterALostLeaseIsTold) {
  shutdown.lease_lost();
  begin();
  loop.run_ready();
  events_sent();
  lease_given_up();
  EXPECT_THAT(steps, ElementsAre("watches", "events", "lease", "done"));
}

TEST_F(ShutdownTest, WhoBeginsAfterALostLeaseWaitsForPassesNoLongerThanTheGrace) {
  passes = 1;
  shutdown.lease_lost();
  begin();
  loop.advance(9999ms);
  EXPECT_THAT(steps, IsEmpty());
  loop.advance(1ms);
  EXPECT_THAT(steps, ElementsAre("watches", "events"));
}

TEST_F(ShutdownTest, AllWhoWaitForTheEndAreToldOnce) {
  begin();
  begin();
  loop.run_ready();
  events_sent();
  lease_given_up();
  EXPECT_THAT(steps, ElementsAre("watches", "events", "lease", "done", "done"));
  begin();
  EXPECT_EQ(steps.size(), 5U) << "never from inside the call";
  loop.run_ready();
  EXPECT_EQ(steps.size(), 6U);
}

}  // namespace
}  // namespace run
