#include "kube/app/lease.hpp"

#include <gtest/gtest.h>

#include "kube/testing/client_fixture.hpp"

namespace kube {
namespace {

using namespace std::chrono_literals;
using core::ErrorCode;
using core::Json;

const std::string kPath = "/apis/coordination.k8s.io/v1/namespaces/ns/leases/l";

Json lease(std::string_view holder, std::string_view rv, std::string_view renewed = "2026-01-01T00:00:00.000000Z") {
  return object_json("ns", "l", rv, "",
                     {{"spec", {{"holderIdentity", holder}, {"renewTime", renewed}, {"leaseTransitions", 3}}}});
}

class LeaseTest : public testing::Test, protected ClientFixture {
 protected:
  LeaseTest() {
    client.set_lease_deadline([this] { return election.deadline(); });
  }
  static LeaseOptions options() {
    LeaseOptions o;
    o.key = {"ns", "l"};
    o.identity = "me";
    return o;
  }
  void start() {
    election.start();
    loop.run_ready();
  }
  /// Answers a write with the object that was written.
  void accept(std::string_view method = "PUT") {
    const auto sent = api.take(method);
    Json stored = sent.body();
    stored["metadata"]["resourceVersion"] = std::to_string(++version);
    sent.reply(200, stored);
  }
  void lead() {
    start();
    api.take("GET", kPath).reply(404, status_json(404, "NotFound"));
    accept("POST");
    ASSERT_EQ(leads, 1);
  }

  int leads = 0;
  int slow_renewals = 0;
  int version = 10;
  std::vector<std::string> lost;
  LeaderElection election{loop,
                          random,
                          log,
                          client,
                          options(),
                          {[this] { ++leads; }, [this](const std::string& why) { lost.push_back(why); }, {}, [this] { ++slow_renewals; }}};
};

TEST_F(LeaseTest, TakesALeaseThatDoesNotExist) {
  start();
  EXPECT_FALSE(election.leading());
  EXPECT_EQ(election.deadline(), std::nullopt);
  api.take("GET", kPath).reply(404, status_json(404, "NotFound"));
  const core::MonoTime sent = loop.clock().mono();
  const auto create = api.take("POST");
  EXPECT_EQ(create.body()["spec"]["holderIdentity"], "me");
  EXPECT_EQ(create.body()["spec"]["leaseDurationSeconds"], 15);
  EXPECT_EQ(create.body()["spec"]["renewTime"], "2026-01-02T03:04:05.000000Z");
  loop.advance(3s);
  create.reply(201, create.body());
  EXPECT_TRUE(election.leading());
  EXPECT_EQ(election.deadline(), sent + 10s) << "counted from when the renewal was sent";
}

TEST_F(LeaseTest, NoRequestOfItWaitsBehindOthers) {
  start();
  const auto read = api.take("GET", kPath);
  EXPECT_TRUE(read.request.urgent);
  EXPECT_LT(read.request.timeout, 10s) << "another can still be made before the deadline";
  read.reply(404, status_json(404, "NotFound"));
  const auto create = api.take("POST");
  EXPECT_TRUE(create.request.urgent);
  create.reply(201, create.body());
  loop.advance(2s);
  const auto renewal = api.take("PUT");
  EXPECT_TRUE(renewal.request.urgent);
  renewal.reply(200, renewal.body());
  election.release([] {});
  EXPECT_TRUE(api.take("PUT").request.urgent);
}

TEST_F(LeaseTest, AHolderLivesForAsLongAsItsLeaseChanges) {
  start();
  for (int i = 0; i < 20; ++i) {  // the holder's clock is a year off, which does not matter
    api.take("GET").reply(200, lease("other", std::to_string(i), "2025-01-01T00:00:" + std::to_string(10 + i) + ".000000Z"));
    EXPECT_TRUE(api.sent.empty());
    loop.advance(5s);
  }
  EXPECT_EQ(leads, 0);
}

TEST_F(LeaseTest, AHolderThatDoesNotRenewIsFollowed) {
  start();
  core::Duration waited{0};
  while (!api.has("PUT")) {
    ASSERT_LT(waited, 30s);
    if (api.has("GET")) api.take("GET").reply(200, lease("other", "7"));
    if (api.has("PUT")) break;
    loop.advance(100ms);
    waited += 100ms;
  }
  EXPECT_GE(waited, 15s);
  EXPECT_LE(waited, 20s);
  const auto put = api.take("PUT");
  EXPECT_EQ(put.body()["metadata"]["resourceVersion"], "7") << "only if nobody else was faster";
  EXPECT_EQ(put.body()["spec"]["leaseTransitions"], 4);
  put.reply(409, status_json(409, "Conflict"));
  EXPECT_EQ(leads, 0);
}

TEST_F(LeaseTest, AnAnswerThatIsNoLeaseIsNone) {
  const std::vector<Json> nonsense = {Json::object(), Json::array(), "ok", nullptr, 7};
  start();
  for (const Json& answer : nonsense) {
    api.take("GET", kPath).reply(200, answer);
    EXPECT_TRUE(api.sent.empty());
    loop.advance(5s);
  }
  for (const Json& answer : nonsense) {
    api.take("GET", kPath).reply(404, status_json(404, "NotFound"));
    api.take("POST").reply(201, answer);
    EXPECT_EQ(leads, 0);
    loop.advance(5s);
  }
  api.take("GET", kPath).reply(200, lease("", "7"));
  accept();
  ASSERT_EQ(leads, 1);
  for (const Json& answer : nonsense) {
    loop.advance(2s);
    api.take("PUT").reply(200, answer);
    loop.advance(2s);
    api.take("GET", kPath).reply(200, lease("me", "8"));
    accept();
    EXPECT_TRUE(election.leading());
  }
  bool released = false;
  loop.advance(2s);
  api.take("PUT").reply(200, "ok");
  election.release([&] { released = true; });
  api.take("GET", kPath).reply(200, Json::array());
  EXPECT_TRUE(released);
}

TEST_F(LeaseTest, AReleasedLeaseIsTakenAtOnce) {
  start();
  api.take("GET").reply(200, lease("", "7"));
  accept();
  EXPECT_EQ(leads, 1);
}

TEST_F(LeaseTest, ALeaderRenewsWithOneRequest) {
  lead();
  for (int i = 0; i < 10; ++i) {
    loop.advance(2s);
    EXPECT_FALSE(api.has("GET"));
    accept();
  }
  EXPECT_TRUE(election.leading());
  EXPECT_TRUE(lost.empty());
  EXPECT_EQ(slow_renewals, 0);
}

TEST_F(LeaseTest, ALeaderThatCannotRenewStopsBeforeAnotherCanBegin) {
  lead();
  const core::MonoTime renewed = loop.clock().mono();
  while (lost.empty()) {
    ASSERT_LT(loop.clock().mono() - renewed, 15s);
    EXPECT_EQ(election.deadline().has_value(), loop.clock().mono() - renewed < 10s) << "nothing may be written any more";
    while (!api.sent.empty()) {
      const auto sent = api.sent.front();
      api.sent.pop_front();
      sent.fail(ErrorCode::kUnknownOutcome);
    }
    loop.advance(100ms);
  }
  EXPECT_LE(loop.clock().mono() - renewed, 13100ms);
  EXPECT_FALSE(election.leading());
  EXPECT_EQ(election.deadline(), std::nullopt);
  api.sent.clear();
  loop.advance(60s);
  EXPECT_TRUE(api.sent.empty()) << "it does not come back";
  EXPECT_EQ(lost.size(), 1U);
}

TEST_F(LeaseTest, AnAnswerThatNeverComesLosesTheLeaseToo) {
  lead();
  loop.advance(13s);
  EXPECT_EQ(lost.size(), 1U);
}

// In this case, client-go keeps its lease as well.
TEST_F(LeaseTest, AnApiServerThatTakesFiveSecondsForEachAnswerDoesNotCostTheLease) {
  lead();
  for (int i = 0; i < 20; ++i) {
    while (!api.has("PUT")) loop.advance(loop.until_next());
    const core::MonoTime sent = loop.clock().mono();
    const auto put = api.take("PUT");
    EXPECT_GT(put.request.timeout, 5s);
    loop.advance(5s);
    Json stored = put.body();
    stored["metadata"]["resourceVersion"] = std::to_string(++version);
    put.reply(200, stored);
    ASSERT_TRUE(lost.empty()) << lost[0];
    ASSERT_EQ(election.deadline(), sent + 10s);
  }
}

TEST_F(LeaseTest, ARenewalThatComesLateMakesItWholeAgain) {
  lead();
  loop.advance(2s);
  api.take("PUT").fail(ErrorCode::kUnknownOutcome);
  loop.advance(2s);
  const auto get = api.take("GET");
  loop.advance(5s);
  get.reply(200, lease("me", "50"));
  const auto put = api.take("PUT");
  loop.advance(2s);
  EXPECT_EQ(election.deadline(), std::nullopt) << "renewed 11 s ago";
  EXPECT_TRUE(lost.empty());
  put.reply(200, put.body());
  EXPECT_TRUE(election.leading());
  EXPECT_EQ(election.deadline(), loop.clock().mono() + 8s);
}

TEST_F(LeaseTest, AnotherHolderEndsIt) {
  lead();
  loop.advance(2s);
  api.take("PUT").reply(409, status_json(409, "Conflict"));
  loop.advance(2s);
  api.take("GET").reply(200, lease("other", "99"));
  EXPECT_EQ(lost.size(), 1U);
  EXPECT_FALSE(election.leading());
}

TEST_F(LeaseTest, ALostRenewalIsFoundOutByReading) {
  lead();
  loop.advance(2s);
  const auto put = api.take("PUT");
  put.fail(ErrorCode::kUnknownOutcome);
  loop.advance(2s);
  Json stored = put.body();
  stored["metadata"]["resourceVersion"] = "50";
  api.take("GET").reply(200, stored);
  EXPECT_EQ(api.take("PUT").body()["metadata"]["resourceVersion"], "50");
  EXPECT_TRUE(election.leading());
  EXPECT_EQ(slow_renewals, 1);
}

TEST_F(LeaseTest, ReleaseGivesItUp) {
  lead();
  bool released = false;
  election.release([&] { released = true; });
  EXPECT_FALSE(election.leading());
  const auto put = api.take("PUT");
  EXPECT_EQ(put.body()["spec"]["holderIdentity"], "");
  EXPECT_FALSE(released);
  put.reply(200, put.body());
  EXPECT_TRUE(released);
  EXPECT_TRUE(lost.empty());
  loop.advance(60s);
  EXPECT_TRUE(api.sent.empty());
}

TEST_F(LeaseTest, ReleaseWaitsForARenewalUnderWay) {
  lead();
  loop.advance(2s);
  const auto renewal = api.take("PUT");
  bool released = false;
  election.release([&] { released = true; });
  loop.run_ready();
  EXPECT_FALSE(election.leading());
  EXPECT_TRUE(api.sent.empty()) << "one of the two would be refused";
  Json stored = renewal.body();
  stored["metadata"]["resourceVersion"] = "50";
  renewal.reply(200, stored);
  const auto put = api.take("PUT");
  EXPECT_EQ(put.body()["spec"]["holderIdentity"], "");
  EXPECT_EQ(put.body()["metadata"]["resourceVersion"], "50");
  EXPECT_FALSE(released);
  put.reply(200, put.body());
  EXPECT_TRUE(released);
  loop.advance(60s);
  EXPECT_TRUE(api.sent.empty()) << "it is not renewed";
}

TEST_F(LeaseTest, ALeaseThatWasBeingTakenIsReleasedToo) {
  start();
  api.take("GET").reply(200, lease("", "7"));
  const auto take = api.take("PUT");
  bool released = false;
  election.release([&] { released = true; });
  loop.run_ready();
  EXPECT_FALSE(released);
  take.reply(200, take.body());
  EXPECT_EQ(leads, 0);
  const auto put = api.take("PUT");
  EXPECT_EQ(put.body()["spec"]["holderIdentity"], "");
  put.reply(200, put.body());
  EXPECT_TRUE(released);
}

TEST_F(LeaseTest, AfterAFailedRenewalReleaseReadsFirst) {
  lead();
  loop.advance(2s);
  api.take("PUT").fail(ErrorCode::kUnknownOutcome);
  bool released = false;
  election.release([&] { released = true; });
  EXPECT_FALSE(released);
  api.take("GET", kPath).reply(200, lease("me", "50"));
  const auto put = api.take("PUT");
  EXPECT_EQ(put.body()["spec"]["holderIdentity"], "");
  EXPECT_EQ(put.body()["metadata"]["resourceVersion"], "50");
  put.reply(200, put.body());
  EXPECT_TRUE(released);
}

TEST_F(LeaseTest, ARefusedReleaseIsTriedOnceMoreIfTheLeaseIsOurs) {
  lead();
  bool released = false;
  election.release([&] { released = true; });
  api.take("PUT").reply(409, status_json(409, "Conflict"));
  EXPECT_FALSE(released);
  api.take("GET", kPath).reply(200, lease("me", "50"));
  const auto put = api.take("PUT");
  EXPECT_EQ(put.body()["metadata"]["resourceVersion"], "50");
  put.reply(409, status_json(409, "Conflict"));
  EXPECT_TRUE(released) << "and not again and again";
  EXPECT_TRUE(api.sent.empty());
}

TEST_F(LeaseTest, ALeaseThatAnotherHoldsByNowIsLeftToIt) {
  lead();
  bool released = false;
  election.release([&] { released = true; });
  api.take("PUT").reply(409, status_json(409, "Conflict"));
  api.take("GET", kPath).reply(200, lease("other", "50"));
  EXPECT_TRUE(released);
  EXPECT_TRUE(api.sent.empty());
}

TEST_F(LeaseTest, ALeaseThatCannotBeReadIsNotReleased) {
  lead();
  loop.advance(2s);
  api.take("PUT").fail(ErrorCode::kUnknownOutcome);
  bool released = false;
  election.release([&] { released = true; });
  api.take("GET", kPath).reply(500, status_json(500, "InternalError"));
  EXPECT_TRUE(released);
  EXPECT_TRUE(api.sent.empty());
}

TEST_F(LeaseTest, EndedItIsNeitherRenewedNorGivenUp) {
  lead();
  election.end();
  EXPECT_FALSE(election.leading());
  EXPECT_EQ(election.deadline(), std::nullopt);
  loop.advance(60s);
  EXPECT_TRUE(api.sent.empty());
  EXPECT_TRUE(lost.empty());
}

TEST_F(LeaseTest, WhoDoesNotHoldItReleasesNothing) {
  start();
  api.take("GET").reply(200, lease("other", "7"));
  bool released = false;
  election.release([&] { released = true; });
  loop.run_ready();
  EXPECT_TRUE(released);
  EXPECT_FALSE(api.has("PUT"));
}

TEST_F(LeaseTest, AWallClockThatJumpsChangesNothing) {
  lead();
  loop.manual_clock().set_wall(core::WallTime{});
  loop.advance(2s);
  accept();
  EXPECT_TRUE(election.leading());
  EXPECT_EQ(election.deadline(), loop.clock().mono() + 10s);
}

}  // namespace
}  // namespace kube
