#include "slurm/accounting/lists.hpp"

#include <gtest/gtest.h>

#include "core/testing/manual_loop.hpp"
#include "slurm/rest/client.hpp"
#include "slurm/testing/fake_transport.hpp"
#include "slurm/testing/replies.hpp"

namespace slurm::accounting {
namespace {

using namespace std::chrono_literals;
using Health = Rows<std::string, Qos>::Health;
const std::string kBase = "/slurmdb/v0.0.45";

struct FixedTokens final : TokenSource {
  Credentials current() override { return {"slurm", "token"}; }
  void refused() override {}
};

net::HttpResponse list(const std::string& name, const std::string& rows) {
  return testing::ok("{\"" + name + "\":[" + rows + R"(],"errors":[],)" + testing::meta() + "}");
}

struct ListsTest : ::testing::Test {
  ListsTest() {
    http.on("GET", "/openapi/v3", testing::openapi());
    http.on("GET", kBase + "/qos/", list("qos", R"({"id":1,"name":"normal"})"));
    http.on("GET", kBase + "/tres/", list("TRES", R"({"id":1,"type":"cpu"})"));
    http.on("GET", kBase + "/accounts/", list("accounts", R"({"name":"root"})"));
    http.on("GET", kBase + "/users/", list("users", R"({"name":"root"})"));
    http.on("GET", kBase + "/associations/", list("associations", R"({"id":1,"cluster":"c","account":"root"})"));
    http.on("GET", kBase + "/clusters/", list("clusters", R"({"name":"c"})"));
  }
  [[nodiscard]] int asked(const std::string& name) const { return http.asked("GET", kBase + "/" + name + "/"); }

  core::ManualLoop loop;
  core::NullLogger log;
  ZeroRandom random;
  FakeTransport http{loop};
  FixedTokens tokens;
  Client client{loop, http, tokens, log};
  std::map<List, int> told;
  std::uint64_t rounds = 0;
  std::unique_ptr<Lists> made(const ListsOptions& options) {
    return std::make_unique<Lists>(
        loop, random, [this] { return &client.accounting(); }, [this] { return ++rounds; },
        [this](List which, bool changed) { told[which] += changed ? 1 : 0; }, options);
  }
  std::unique_ptr<Lists> made_lists = made({.period = 2s, .names_period = 2s, .seldom = 2s});
  Lists& lists = *made_lists;
};

TEST_F(ListsTest, EveryListComesAndIsTold) {
  EXPECT_EQ(lists.qos().health, Health::kNone);
  EXPECT_TRUE(lists.qos().rows->empty());
  lists.start();
  loop.advance(100ms);
  EXPECT_EQ(lists.qos().rows->at("normal")->id, 1);
  EXPECT_EQ(lists.tres().rows->at(1)->name, "cpu");
  EXPECT_TRUE(lists.accounts().rows->contains("root"));
  EXPECT_TRUE(lists.users().rows->contains("root"));
  EXPECT_EQ(lists.associations().rows->at("c/root//")->account, "root");
  EXPECT_TRUE(lists.clusters().rows->contains("c"));
  EXPECT_EQ(lists.qos().health, Health::kComplete);
  EXPECT_EQ(told.size(), 6U);
}

// slurmrestd of 24.11 gives every association the id 0.
TEST_F(ListsTest, AssociationsWithoutNumbersAreToldApart) {
  http.on("GET", kBase + "/associations/",
          list("associations", R"({"id":0,"cluster":"c","account":"root"},{"id":0,"cluster":"c","account":"a","user":"ann"})"));
  lists.start();
  loop.advance(100ms);
  EXPECT_EQ(lists.associations().rows->size(), 2U);
}

TEST_F(ListsTest, NothingNewTellsNobodyAndKeepsTheRows) {
  lists.start();
  loop.advance(100ms);
  const auto before = lists.qos().rows;
  told.clear();
  loop.advance(4s);
  EXPECT_EQ(asked("qos"), 3);
  EXPECT_EQ(lists.qos().rows, before);
  EXPECT_EQ(told[List::kQos] + told[List::kUsers], 0);
  told.clear();
  http.on("GET", kBase + "/qos/", list("qos", R"({"id":1,"name":"normal","description":"x"},{"id":2,"name":"new"})"));
  loop.advance(2s);
  EXPECT_EQ(told[List::kQos], 1);
  EXPECT_EQ(told[List::kUsers], 0);
  EXPECT_EQ(lists.qos().rows->size(), 2U);
  EXPECT_EQ(lists.qos().rows->at("normal")->description, "x");
}

TEST_F(ListsTest, AFailedPollLeavesTheRowsAndSaysSo) {
  lists.start();
  loop.advance(100ms);
  told.clear();
  http.on("GET", kBase + "/qos/", testing::error(500, 7000, "slurmdbd is away"));
  loop.advance(2s);
  EXPECT_EQ(lists.qos().health, Health::kStale);
  EXPECT_NE(lists.qos().error, "");
  EXPECT_TRUE(lists.qos().rows->contains("normal")) << "unknown is not empty";
  EXPECT_EQ(lists.users().health, (Rows<std::string, User>::Health::kComplete)) << "each list stands for itself";
  EXPECT_EQ(told[List::kQos], 1);
  loop.advance(60s);
  EXPECT_EQ(told[List::kQos], 1) << "the same failure again is no news";
  EXPECT_LE(asked("qos"), 12) << "failures are asked about ever less often";
  http.on("GET", kBase + "/qos/", list("qos", ""));
  loop.advance(20s);
  EXPECT_EQ(lists.qos().health, Health::kComplete);
  EXPECT_TRUE(lists.qos().rows->empty());
}

TEST_F(ListsTest, AtRestAMinuteHasFewerThan240Requests) {
  const auto usual = made({});
  usual->start();
  loop.advance(10s);
  const auto all = [this] {
    int out = 0;
    for (const char* name : {"qos", "tres", "accounts", "users", "associations", "clusters"}) out += asked(name);
    return out;
  };
  const int before = all();
  const int limits = asked("associations"), names = asked("users");
  loop.advance(60s);
  // The controller of Accountings also asks each slurmrestd for the clusters every 45 s, which adds up to 2 requests a minute.
  EXPECT_LT(all() - before + 2, 240);
  EXPECT_GE(asked("associations") - limits, 70) << "a changed limit is seen within a second";
  EXPECT_GE(asked("users") - names, 38) << "a changed level is reverted within two seconds";
}

TEST_F(ListsTest, ADearListIsAskedForLessOften) {
  http.latency = 500ms;
  lists.start();
  loop.advance(60s);
  EXPECT_GE(asked("qos"), 5);
  EXPECT_LE(asked("qos"), 7) << "10 s from one to the next";
}

TEST_F(ListsTest, AfterAWriteAPollComesThatBeganAfterIt) {
  lists.start();
  loop.advance(100ms);
  const core::MonoTime written = loop.clock().mono();
  lists.poll_soon(List::kQos);
  loop.advance(100ms);
  EXPECT_GE(lists.qos().requested_at, written);
  EXPECT_LT(lists.users().requested_at, written);
  // slurmdbd may have answered the poll under way before the write.
  http.held = "/qos/";
  loop.advance(2s);
  const core::MonoTime again = loop.clock().mono();
  lists.poll_soon(List::kQos);
  http.release();
  loop.advance(1s);
  EXPECT_GE(lists.qos().requested_at, again);
}

TEST_F(ListsTest, WritesDoNotPutOffThePollOfAListThatFails) {
  http.on("GET", kBase + "/qos/", testing::error(500, 7000, "slurmdbd is away"));
  lists.start();
  loop.advance(100ms);
  const int before = asked("qos");
  for (int i = 0; i < 20; ++i) {
    lists.poll_soon(List::kQos);
    loop.advance(400ms);
  }
  EXPECT_GE(asked("qos"), before + 3);
}

TEST_F(ListsTest, PollsFasterWhileSomebodyWaits) {
  lists.start();
  loop.advance(100ms);
  for (int i = 0; i < 20; ++i) {
    lists.poll_often();
    loop.advance(100ms);
  }
  EXPECT_EQ(asked("qos"), 5) << "every half a second, however often it is said";
  loop.advance(10s);
  EXPECT_LE(asked("qos"), 5 + 4 + 5) << "and two seconds longer";
}

TEST_F(ListsTest, StaleListsAreReadAgainAndNoOlderAnswerCounts) {
  lists.start();
  loop.advance(100ms);
  http.held = "/qos/";
  loop.advance(2s);
  const core::MonoTime led = loop.clock().mono();
  lists.mark_stale();
  EXPECT_EQ(lists.qos().health, Health::kStale);
  EXPECT_EQ(lists.users().health, (Rows<std::string, User>::Health::kStale));
  http.release();
  loop.run_ready();
  EXPECT_EQ(lists.qos().health, Health::kStale) << "that was asked before";
  loop.advance(1s);
  EXPECT_EQ(lists.qos().health, Health::kComplete);
  EXPECT_GE(lists.qos().requested_at, led);
  EXPECT_EQ(lists.users().health, (Rows<std::string, User>::Health::kComplete));
}

TEST_F(ListsTest, WhatWasAskedBeforeAStopAnswersNothingAfterIt) {
  http.held = "/qos/";
  lists.start();
  loop.advance(100ms);
  lists.stop();
  lists.start();
  const core::MonoTime begun = loop.clock().mono();
  loop.advance(1s);
  EXPECT_EQ(asked("qos"), 2);
  http.release();
  loop.advance(10ms);
  EXPECT_EQ(lists.qos().health, Health::kComplete);
  EXPECT_EQ(lists.qos().requested_at, begun);
  lists.stop();
  const int before = asked("qos");
  loop.advance(60s);
  EXPECT_EQ(asked("qos"), before);
}

}  // namespace
}  // namespace slurm::accounting
