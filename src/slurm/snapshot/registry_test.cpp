#include "slurm/snapshot/registry.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/testing/manual_loop.hpp"
#include "slurm/testing/fake_transport.hpp"
#include "slurm/testing/replies.hpp"

namespace slurm {
namespace {

using namespace std::chrono_literals;
using core::ErrorCode;
const std::string kBase = "/slurm/v0.0.45";

struct RegistryTest : ::testing::Test {
  RegistryTest() {
    testing::serve_quiet_cluster(http);
    clusters.listen([this](const Change& change) { changes.push_back(change); });
  }
  void add() { clusters.set("default/c", {"restapi", 6820}, "key"); }
  [[nodiscard]] SnapshotPtr snapshot() const { return clusters.snapshot("default/c"); }
  /// Returns true if only the age changed.
  static bool quiet(const Change& change) { return change.nodes.empty() && !change.partitions && !change.health; }
  [[nodiscard]] int rounds() const { return http.asked("GET", kBase + "/nodes/"); }

  core::ManualLoop loop;
  ZeroRandom random;
  core::NullLogger log;
  FakeTransport http{loop};
  std::vector<Endpoint> endpoints;
  Clusters clusters{loop, random, log, [this](const Endpoint& endpoint) {
                      endpoints.push_back(endpoint);
                      return std::make_unique<Link>(http);
                    }};
  std::vector<Change> changes;
};

TEST_F(RegistryTest, AnUnknownClusterIsNoneAndNotEmpty) {
  ASSERT_NE(snapshot(), nullptr);
  EXPECT_EQ(snapshot()->health, Snapshot::Health::kNone);
  EXPECT_FALSE(snapshot()->error.empty());
  EXPECT_EQ(clusters.client("default/c"), nullptr);
}

TEST_F(RegistryTest, ANewClusterIsNoneUntilARoundIsWhole) {
  http.held = "/jobs/";
  add();
  loop.advance(100ms);
  EXPECT_EQ(snapshot()->health, Snapshot::Health::kNone) << "nodes without jobs are half an answer";
  http.release();
  loop.advance(1ms);
  ASSERT_EQ(snapshot()->health, Snapshot::Health::kComplete);
  EXPECT_NE(snapshot()->node("n1"), nullptr);
  EXPECT_TRUE(snapshot()->partitions.contains("all"));
  EXPECT_EQ(snapshot()->capabilities.release, "26.05.5");
  EXPECT_EQ(endpoints, (std::vector<Endpoint>{{"restapi", 6820}}));
}

TEST_F(RegistryTest, RequestedAtIsBeforeAnyRequestOfTheRound) {
  add();
  http.latency = 7ms;
  const core::MonoTime start = loop.clock().mono();
  loop.advance(500ms);
  ASSERT_TRUE(snapshot()->complete());
  EXPECT_EQ(snapshot()->requested_at, start + 14ms) << "after negotiation and ping, before partitions and nodes";
}

TEST_F(RegistryTest, AnswersThatCannotBeReadAreToldOnceTheyLast) {
  add();
  loop.advance(500ms);
  http.on("GET", kBase + "/jobs/", testing::ok("{"));
  http.on("GET", kBase + "/jobs/?update_time=", testing::ok("{"));
  loop.advance(1000ms);
  EXPECT_EQ(snapshot()->health, Snapshot::Health::kStale);
  EXPECT_FALSE(snapshot()->unreadable()) << "one accident";
  changes.clear();
  loop.advance(10s);
  EXPECT_TRUE(snapshot()->unreadable());
  EXPECT_EQ(std::ranges::count_if(changes, [](const Change& change) { return change.health; }), 1) << "it is told once";
  testing::serve_quiet_cluster(http);
  loop.advance(10s);
  EXPECT_TRUE(snapshot()->complete());
  EXPECT_FALSE(snapshot()->unreadable());
}

TEST_F(RegistryTest, ASlurmctldThatDoesNotAnswerIsToldFromASlurmrestdThatDoesNot) {
  add();
  loop.advance(500ms);
  http.on("GET", kBase + "/ping/", testing::ping(false));
  for (const std::string path : {"/nodes/", "/jobs/", "/partitions/"}) {
    for (const char* query : {"", "?update_time="})
      http.on("GET", kBase + path + query, testing::error(500, 1800, "Unable to contact slurm controller"));
  }
  loop.advance(500ms);
  EXPECT_FALSE(snapshot()->silent()) << "one accident";
  loop.advance(10s);
  EXPECT_TRUE(snapshot()->silent());
  testing::serve_quiet_cluster(http);
  loop.advance(10s);
  EXPECT_FALSE(snapshot()->silent());
  for (const std::string path : {"/ping/", "/nodes/?update_time=", "/jobs/?update_time=", "/partitions/?update_time="}) {
    http.on("GET", kBase + path, [](const net::HttpRequest&) -> FakeTransport::Answer {
      return core::fail(ErrorCode::kUnavailable, "connection refused");
    });
  }
  loop.advance(60s);
  EXPECT_FALSE(snapshot()->complete());
  EXPECT_FALSE(snapshot()->silent()) << "nothing is known of slurmctld";
}

TEST_F(RegistryTest, WhileSlurmdbdIsAwayUnchangedPartitionsAreGood) {
  add();
  loop.advance(500ms);
  ASSERT_TRUE(snapshot()->complete());
  const auto slurmdbd_is_away = [&] {
    testing::serve_quiet_cluster(http);
    http.on("GET", kBase + "/partitions/", testing::error(500, 111, "Slurmdb query failed"));
  };
  slurmdbd_is_away();
  loop.advance(200s);
  EXPECT_TRUE(snapshot()->complete()) << snapshot()->error;
  EXPECT_LE(loop.clock().mono() - snapshot()->requested_at, 10s);
  EXPECT_TRUE(snapshot()->partitions.contains("all"));

  for (const char* query : {"", "?update_time="})
    http.on("GET", kBase + "/nodes/" + query, testing::error(500, 1800, "Unable to contact slurm controller"));
  loop.advance(10s);
  EXPECT_FALSE(snapshot()->complete());
  slurmdbd_is_away();
  loop.advance(20s);
  EXPECT_TRUE(snapshot()->complete()) << "also after another error: " << snapshot()->error;

  clusters.poll_all_next("default/c");
  loop.advance(20s);
  EXPECT_FALSE(snapshot()->complete()) << "after a reconfigure they may be others";
  testing::serve_quiet_cluster(http);
  loop.advance(20s);
  EXPECT_TRUE(snapshot()->complete());
}

/// Returns a reply with an empty table and the name of the cluster.
std::string table_of(const std::string& list, const std::string& cluster) {
  return "{\"" + list + R"(":[],"last_update":{"set":true,"number":5},"errors":[],"warnings":[],"meta":{"slurm":{"cluster":")" +
         cluster + "\"}}}";
}

TEST_F(RegistryTest, ASlurmrestdOfAnotherClusterIsNotBelieved) {
  clusters.set("default/c", {"restapi", 6820, "default_c"}, "key");
  loop.advance(500ms);
  ASSERT_TRUE(snapshot()->complete()) << "a reply that names no cluster is good";
  for (const char* query : {"", "?update_time="})
    http.on("GET", kBase + "/nodes/" + query, testing::ok(table_of("nodes", "elsewhere")));
  loop.advance(1000ms);
  EXPECT_EQ(snapshot()->health, Snapshot::Health::kStale);
  EXPECT_NE(snapshot()->node("n1"), nullptr) << "its empty table says nothing of our nodes";
  EXPECT_TRUE(snapshot()->other_cluster);
  EXPECT_NE(snapshot()->error.find("slurmrestd is of cluster \"elsewhere\", not of \"default_c\""), std::string::npos)
      << snapshot()->error;
  for (const char* query : {"", "?update_time="})
    http.on("GET", kBase + "/nodes/" + query, testing::ok(table_of("nodes", "DEFAULT_c")));
  loop.advance(10s);
  EXPECT_TRUE(snapshot()->complete());
  EXPECT_FALSE(snapshot()->other_cluster);
}

TEST_F(RegistryTest, ASlurmctldOfAnotherClusterIsKnownByItsJobs) {
  clusters.set("default/c", {"restapi", 6820, "default_c"}, "key");
  const std::string job = R"({"job_id":7,"job_state":["PENDING"],"cluster":")";
  http.on("GET", kBase + "/jobs/", testing::jobs(job + "elsewhere\"}"));
  loop.advance(500ms);
  EXPECT_EQ(snapshot()->health, Snapshot::Health::kNone);
  EXPECT_TRUE(snapshot()->other_cluster);
  EXPECT_NE(snapshot()->error.find("slurmctld is of cluster \"elsewhere\""), std::string::npos) << snapshot()->error;
  http.on("GET", kBase + "/jobs/", testing::jobs(job + "default_c\"}"));
  loop.advance(10s);
  EXPECT_TRUE(snapshot()->complete());
}

TEST_F(RegistryTest, ASlurmctldOfAnotherClusterIsKnownByItsConfiguration) {
  const std::string conf = R"({"errors":[],"warnings":[],"meta":{},"slurm_conf":{"ClusterName":")";
  http.on("GET", kBase + "/conf", testing::ok(conf + "elsewhere\"}}"));
  clusters.set("default/c", {"restapi", 6820, "default_c"}, "key");
  loop.advance(500ms);
  EXPECT_TRUE(snapshot()->other_cluster);
  http.on("GET", kBase + "/conf", {500, {}, ""});
  loop.advance(10s);
  EXPECT_TRUE(snapshot()->complete()) << "what cannot be told holds nothing back";
}

TEST_F(RegistryTest, AJobOnNodesThatCannotBeReadHoldsThemAll) {
  http.on("GET", kBase + "/jobs/", testing::jobs(R"({"job_id":7,"job_state":["RUNNING"],"nodes":"n[1-"})"));
  add();
  loop.advance(500ms);
  ASSERT_TRUE(snapshot()->complete());
  EXPECT_EQ(snapshot()->jobs_on("n1").size(), 1U);
  EXPECT_TRUE(snapshot()->job_names("n1"));
}

TEST_F(RegistryTest, PollsEverySecondAndSharesWhatIsUnchanged) {
  add();
  loop.advance(500ms);
  const SnapshotPtr first = snapshot();
  EXPECT_EQ(rounds(), 1);
  loop.advance(1000ms);
  EXPECT_EQ(rounds(), 2);
  const SnapshotPtr second = snapshot();
  EXPECT_NE(first, second);
  EXPECT_GT(second->requested_at, first->requested_at);
  EXPECT_GT(second->round, first->round);
  EXPECT_TRUE(first->nodes.same(second->nodes));
  EXPECT_TRUE(first->jobs.same(second->jobs));
  EXPECT_TRUE(first->partitions.same(second->partitions));
  EXPECT_EQ(first->job_index, second->job_index);
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_FALSE(quiet(changes[0]));
  EXPECT_TRUE(quiet(changes[1]));
  loop.advance(10000ms);
  EXPECT_EQ(rounds(), 12);
}

/// Jobs end by slurmctld's clock, which can differ from ours.
TEST_F(RegistryTest, AnswersShowTheClockOfSlurmctld) {
  http.on("GET", kBase + "/jobs/", testing::jobs("", 5000));
  add();
  EXPECT_FALSE(snapshot() != nullptr && snapshot()->clock) << "nothing has been answered";
  loop.advance(500ms);
  const auto time = [&] { return snapshot()->time_at(loop.clock().mono()).value().since_epoch; };
  const core::Duration first = time();
  EXPECT_GE(first, 5000s);
  EXPECT_LE(first, 5001s);
  loop.advance(30s);
  EXPECT_EQ(time() - first, 30s) << "the answer that nothing has changed has the old time";
}

TEST_F(RegistryTest, DetailsOfJobsWakeOnlyProgramsThatAskForThem) {
  Clusters detailed(loop, random, log, [this](const Endpoint&) { return std::make_unique<Link>(http); }, {},
                    {.job_details = true});
  std::vector<std::vector<std::int64_t>> told;
  detailed.listen([&](const Change& change) {
    if (!change.jobs.empty()) told.push_back(change.jobs);
  });
  const auto row = [](const std::string& reason, long start) {
    return testing::jobs(R"({"job_id":7,"job_state":["PENDING"],"state_reason":")" + reason + R"(","start_time":)" +
                         std::to_string(start) + "}");
  };
  const auto serve = [&](const net::HttpResponse& jobs) {
    for (const char* query : {"", "?update_time="}) http.on("GET", kBase + "/jobs/" + query, jobs);
  };
  serve(row("Priority", 1000));
  add();
  detailed.set("default/c", {"restapi", 6820}, "key");
  loop.advance(500ms);
  const SnapshotPtr first = snapshot();
  changes.clear();
  serve(row("Resources", 2000));
  loop.advance(1s);
  EXPECT_TRUE(snapshot()->jobs.same(first->jobs)) << "nothing that we ask for has changed";
  EXPECT_EQ(snapshot()->job_index, first->job_index);
  EXPECT_TRUE(std::ranges::all_of(changes, quiet));
  EXPECT_EQ(told, (std::vector<std::vector<std::int64_t>>{{7}, {7}}));
  EXPECT_EQ(detailed.snapshot("default/c")->jobs.at(7)->details->reason, "Resources");
}

TEST_F(RegistryTest, WhatALiveLookContradictsIsAskedForAsAWhole) {
  http.on("GET", kBase + "/nodes/", testing::nodes(testing::node("n1", R"("IDLE")") + "," + testing::node("n2", R"("IDLE")")));
  http.on("GET", kBase + "/nodes/?update_time=", net::HttpResponse{304, {}, ""});
  add();
  loop.advance(500ms);
  // n2 is deleted, and slurmctld reports no change.
  http.on("GET", kBase + "/nodes/", testing::nodes(testing::node("n1", R"("IDLE")")));
  http.on("GET", kBase + "/nodes/?update_time=", net::HttpResponse{304, {}, ""});
  loop.advance(3000ms);
  EXPECT_NE(snapshot()->node("n2"), nullptr);
  clusters.poll_all_next("default/c");
  loop.advance(1100ms);
  EXPECT_EQ(snapshot()->node("n2"), nullptr);
  EXPECT_NE(snapshot()->node("n1"), nullptr);
}

TEST_F(RegistryTest, WhatWasReadBeforeWeLedIsStaleUntilItIsReadAgain) {
  add();
  loop.advance(500ms);
  ASSERT_TRUE(snapshot()->complete());
  http.held = "/nodes/";
  loop.advance(1000ms);
  clusters.mark_stale();
  EXPECT_EQ(snapshot()->health, Snapshot::Health::kStale);
  http.release();
  loop.advance(1ms);
  EXPECT_EQ(snapshot()->health, Snapshot::Health::kStale) << "that round had begun before";
  loop.advance(500ms);
  EXPECT_TRUE(snapshot()->complete());
  EXPECT_NE(snapshot()->node("n1"), nullptr);
}

TEST_F(RegistryTest, ThatNothingChangedIsTakenForAMinute) {
  http.on("GET", kBase + "/nodes/", testing::nodes(testing::node("n1", R"("IDLE")")));
  http.on("GET", kBase + "/nodes/?update_time=", net::HttpResponse{304, {}, ""});
  add();
  loop.advance(500ms);
  http.on("GET", kBase + "/nodes/", testing::nodes(""));
  http.on("GET", kBase + "/nodes/?update_time=", net::HttpResponse{304, {}, ""});
  loop.advance(58s);
  EXPECT_NE(snapshot()->node("n1"), nullptr);
  loop.advance(3s);
  EXPECT_EQ(snapshot()->node("n1"), nullptr);
}

TEST_F(RegistryTest, TellsWhichNodesMoved) {
  http.on("GET", kBase + "/nodes/", testing::nodes(testing::node("n1", R"("IDLE")") + "," + testing::node("n2", R"("IDLE")")));
  add();
  loop.advance(500ms);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].nodes, (std::vector<std::string>{"n1", "n2"}));
  const SnapshotPtr before = snapshot();
  http.on("GET", kBase + "/nodes/?update_time=",
          testing::nodes(testing::node("n1", R"("IDLE")") + "," + testing::node("n3", R"("IDLE","DRAIN")"), 101));
  loop.advance(1000ms);
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[1].nodes, (std::vector<std::string>{"n2", "n3"}));
  EXPECT_EQ(snapshot()->nodes.at("n1"), before->nodes.at("n1")) << "an unchanged record is shared";
  EXPECT_EQ(snapshot()->node("n2"), nullptr);
  http.on("GET", kBase + "/nodes/?update_time=", net::HttpResponse{304, {}, ""});
  http.on("GET", kBase + "/jobs/?update_time=", testing::jobs(R"({"job_id":7,"job_state":["RUNNING"],"nodes":"n[1,3]"})", 102));
  loop.advance(1000ms);
  ASSERT_EQ(changes.size(), 3U);
  EXPECT_EQ(changes[2].nodes, (std::vector<std::string>{"n1", "n3"})) << "a job came to them";
  EXPECT_EQ(snapshot()->jobs_on("n3").size(), 1U);
  http.on("GET", kBase + "/jobs/?update_time=", testing::no_job_changes());
  loop.advance(1000ms);
  EXPECT_TRUE(quiet(changes[3]));
  EXPECT_EQ(snapshot()->jobs_on("n3").size(), 1U) << "no changes is not no jobs";
}

TEST_F(RegistryTest, AsksForNodesAgainWhenOnlyPartitionsMoved) {
  add();
  loop.advance(500ms);
  http.on("GET",
          kBase + "/partitions/?update_time=", testing::partitions(R"({"name":"gpu","partition":{"state":["UP"]}})", 105));
  http.on("GET", kBase + "/nodes/", testing::nodes(R"({"name":"n1","state":["IDLE"],"partitions":["gpu"]})", 106));
  loop.advance(1000ms);
  ASSERT_TRUE(snapshot()->complete());
  EXPECT_EQ(snapshot()->node("n1")->partitions, std::vector<std::string>{"gpu"});
  EXPECT_TRUE(changes.back().partitions);
}

TEST_F(RegistryTest, JobsAreAskedForAfterNodesHaveAnswered) {
  http.held = "/nodes/";
  add();
  loop.advance(100ms);
  EXPECT_EQ(http.asked("GET", kBase + "/jobs/"), 0);
  http.release();
  loop.advance(100ms);
  EXPECT_EQ(http.asked("GET", kBase + "/jobs/"), 1);
}

TEST_F(RegistryTest, AFailedRoundIsStaleWithItsContents) {
  add();
  loop.advance(500ms);
  const SnapshotPtr good = snapshot();
  http.on("GET", kBase + "/jobs/?update_time=", testing::error(500, 1800, "Unable to query jobs"));
  http.on("GET", kBase + "/jobs/", testing::error(500, 1800, "Unable to query jobs"));
  http.on("GET", kBase + "/nodes/?update_time=", testing::nodes(""));
  loop.advance(1000ms);
  EXPECT_EQ(snapshot()->health, Snapshot::Health::kStale);
  EXPECT_EQ(snapshot()->requested_at, good->requested_at);
  EXPECT_TRUE(snapshot()->nodes.same(good->nodes)) << "nothing is concluded from half a round";
  EXPECT_NE(snapshot()->error.find("Unable to query jobs"), std::string::npos);
  ASSERT_GE(changes.size(), 2U);
  EXPECT_TRUE(changes[1].health);
  EXPECT_TRUE(changes[1].nodes.empty());
  testing::serve_quiet_cluster(http);
  loop.advance(5s);
  EXPECT_TRUE(snapshot()->complete());
  EXPECT_GT(snapshot()->requested_at, good->requested_at);
}

TEST_F(RegistryTest, PingsUntilSlurmctldAnswersAndAsksLittleElse) {
  http.on("GET", kBase + "/ping/", testing::ping(false));
  add();
  loop.advance(60s);
  EXPECT_EQ(snapshot()->health, Snapshot::Health::kNone);
  EXPECT_LE(rounds(), 2) << "why there is no answer";
  EXPECT_EQ(http.asked("GET", kBase + "/jobs/"), 0);
  const int pings = http.asked("GET", kBase + "/ping/");
  EXPECT_GE(pings, 14) << "0.3, 0.6, 1.2, 2.4, 4.8, 5, 5 ...";
  EXPECT_LE(pings, 18);
  clusters.poll_often("default/c");
  loop.advance(2s);
  EXPECT_GE(http.asked("GET", kBase + "/ping/"), pings + 4) << "somebody waits";
  http.on("GET", kBase + "/ping/", testing::ping(true));
  loop.advance(5s);
  EXPECT_TRUE(snapshot()->complete());
}

TEST_F(RegistryTest, ARefusedTokenIsToldFromASlurmctldThatIsAway) {
  http.on("GET", kBase + "/ping/", testing::ping(false));
  add();
  loop.advance(20ms);
  EXPECT_EQ(snapshot()->error_code, ErrorCode::kUnavailable);
  clusters.remove("default/c");
  loop.advance(1s);
  const std::string refused = "Protocol authentication error";
  for (const char* table : {"/nodes/", "/jobs/", "/partitions/"}) {
    http.on("GET", kBase + table, testing::error(511, 1007, refused));
  }
  add();
  loop.advance(20ms);
  EXPECT_EQ(snapshot()->health, Snapshot::Health::kNone);
  EXPECT_EQ(snapshot()->error_code, ErrorCode::kUnauthorized);
  EXPECT_NE(snapshot()->error.find(refused), std::string::npos) << snapshot()->error;
  ASSERT_FALSE(changes.empty());
  EXPECT_TRUE(changes.back().health) << "whoever waits is told";
  for (int i = 0; i < 120; ++i) {
    loop.advance(500ms);
    ASSERT_EQ(snapshot()->error_code, ErrorCode::kUnauthorized) << "not one word now and another one then";
  }
  testing::serve_quiet_cluster(http);
  loop.advance(10s);
  EXPECT_TRUE(snapshot()->complete());
  http.on("GET", kBase + "/ping/", testing::ping(false));
  for (const char* table : {"/nodes/?update_time=", "/nodes/"})
    http.on("GET", kBase + table, testing::error(500, 1800, "away"));
  loop.advance(60s);
  EXPECT_EQ(snapshot()->error_code, ErrorCode::kUnavailable) << "it is not refused any more";
}

TEST_F(RegistryTest, WhoAsksWhySlurmctldIsSilentDoesNotHoldUpPings) {
  http.on("GET", kBase + "/ping/", testing::ping(false));
  http.held = "/nodes/";
  add();
  loop.advance(60s);
  EXPECT_EQ(rounds(), 1);
  EXPECT_GE(http.asked("GET", kBase + "/ping/"), 14);
  EXPECT_EQ(snapshot()->error_code, ErrorCode::kUnavailable);
  http.on("GET", kBase + "/ping/", testing::ping(true));
  http.held.clear();
  loop.advance(10s);
  EXPECT_TRUE(snapshot()->complete());
}

TEST_F(RegistryTest, AfterAFailureEverythingIsFetchedWhole) {
  add();
  loop.advance(500ms);
  http.on("GET", kBase + "/nodes/?update_time=", testing::error(500, 1800, "away"));
  loop.advance(600ms);
  ASSERT_EQ(snapshot()->health, Snapshot::Health::kStale);
  http.log.clear();
  loop.advance(500ms);
  EXPECT_TRUE(snapshot()->complete());
  for (const auto& request : http.log) EXPECT_EQ(request.target.find("update_time"), std::string::npos) << request.target;
}

TEST_F(RegistryTest, PollsFasterWhileSomebodyWaits) {
  add();
  loop.advance(500ms);
  clusters.poll_often("default/c");
  loop.advance(2s);
  EXPECT_GE(rounds(), 6);
  const int before = rounds();
  loop.advance(10000ms);
  EXPECT_LE(rounds(), before + 11) << "and slower again";
}

TEST_F(RegistryTest, PollsAsOftenAsTheCostAllows) {
  http.latency = 50ms;  // A round waits for two answers in a row: 100 ms.
  add();
  loop.advance(1000ms);
  int before = rounds();
  loop.advance(10000ms);
  EXPECT_EQ(rounds() - before, 5) << "20 times the cost";
  before = rounds();
  for (int i = 0; i < 100; ++i) {
    clusters.poll_often("default/c");
    clusters.poll_soon("default/c");
    loop.advance(100ms);
  }
  EXPECT_LE(rounds() - before, 26) << "4 times the cost";
  EXPECT_GE(rounds() - before, 20);
}

TEST_F(RegistryTest, TheStatesOfPodsJobsAreReadBetweenExpensiveRounds) {
  const auto job = [](const std::string& state, const std::string& flags) {
    return testing::jobs(R"({"job_id":7,"job_state":[")" + state + R"("],"nodes":"n1","flags":[)" + flags + "]}", 101);
  };
  const auto states = [](const std::string& state) {
    return testing::ok(R"({"jobs":[{"job_id":"7","state":[")" + state +
                       R"("]},{"job_id":"8_1","state":["PENDING"]}],"errors":[]})");
  };
  const auto serve = [&](const std::string& state, const std::string& flags) {
    http.on("GET", kBase + "/jobs/", job(state, flags));
    http.on("GET", kBase + "/jobs/?update_time=", job(state, flags));
  };
  const auto glances = [&] { return http.asked("GET", kBase + "/jobs/state/"); };
  Clusters follower{
      loop, random, log, [this](const Endpoint&) { return std::make_unique<Link>(http); }, {}, {.job_details = true}};
  http.latency = 100ms;  // A round waits for two answers in a row, so that the next round is due after 4 s.
  serve("RUNNING", R"("EXTERNAL_JOB")");
  http.on("GET", kBase + "/jobs/state/", states("RUNNING"));
  follower.set("default/c", {"restapi", 6820}, "key");
  loop.advance(1s);
  ASSERT_TRUE(follower.snapshot("default/c")->complete());
  http.log.clear();
  loop.advance(40s);
  EXPECT_LE(rounds(), 11);
  EXPECT_GE(glances(), 10) << "between the rounds";
  EXPECT_LE(glances(), 20) << "20 times their cost";

  serve("CANCELLED", R"("EXTERNAL_JOB")");
  http.on("GET", kBase + "/jobs/state/", states("CANCELLED"));
  loop.advance(2500ms);
  EXPECT_EQ(follower.snapshot("default/c")->jobs.find(7)->second->state, "CANCELLED") << "a glance leads to a round at once";

  http.log.clear();
  loop.advance(20s);
  EXPECT_EQ(glances(), 0) << "no pod has a job";
}

TEST_F(RegistryTest, TheStatesOfOtherJobsWaitForTheNextRound) {
  Clusters follower{
      loop, random, log, [this](const Endpoint&) { return std::make_unique<Link>(http); }, {}, {.job_details = true}};
  http.latency = 100ms;
  for (const char* path : {"/jobs/", "/jobs/?update_time="})
    http.on("GET", kBase + path, testing::jobs(R"({"job_id":7,"job_state":["RUNNING"],"nodes":"n1"})", 101));
  follower.set("default/c", {"restapi", 6820}, "key");
  loop.advance(20s);
  EXPECT_TRUE(follower.snapshot("default/c")->complete());
  EXPECT_EQ(http.asked("GET", kBase + "/jobs/state/"), 0);
}

TEST_F(RegistryTest, AServerThatIsLastinglySlowGivesEvidenceAllTheSame) {
  http.on("GET", kBase + "/nodes/", testing::nodes(testing::node("n1", R"("IDLE","DRAIN")", "slurm-operator: x")));
  http.latency = 4s;  // A round waits for two answers in a row: 8 s.
  int seen = 0;
  clusters.listen([&](const Change& change) {
    if (!change.now->complete()) return;
    ++seen;
    const core::MonoTime now = loop.clock().mono();
    EXPECT_EQ(now - change.now->requested_at, 8s);
    EXPECT_TRUE(change.now->fresh(now));
    EXPECT_TRUE(change.now->fresh(now + 5s)) << "time for a pass";
    EXPECT_FALSE(change.now->fresh(now + 15s));
  });
  add();
  loop.advance(120s);
  EXPECT_GE(seen, 5);
}

TEST_F(RegistryTest, AWriteIsFollowedByAPollAtOnce) {
  add();
  loop.advance(500ms);
  clusters.poll_soon("default/c");
  loop.advance(20ms);
  EXPECT_EQ(rounds(), 2);
}

TEST_F(RegistryTest, AGateWaitsForARoundThatStartedAfterIt) {
  add();
  loop.advance(500ms);
  http.held = "/jobs/";
  loop.advance(510ms);  // A round is under way.
  const auto gate = clusters.gate_from_now("default/c", "drain n1");
  EXPECT_EQ(gate->describe(), "drain n1");
  EXPECT_FALSE(gate->open());
  clusters.poll_soon("default/c");
  http.release();
  loop.run_ready();
  EXPECT_FALSE(gate->open()) << "that round had begun before";
  loop.advance(400ms);
  EXPECT_TRUE(gate->open());
}

TEST_F(RegistryTest, AGateDoesNotHoldAKeyWhileSlurmIsAway) {
  add();
  loop.advance(500ms);
  const auto written = clusters.gate_from_now("default/c", "x");
  const auto lost = clusters.gate_after("default/c", loop.clock().mono() + 5s, "y");
  http.on("GET", kBase + "/nodes/?update_time=", testing::error(500, 1800, "away"));
  http.on("GET", kBase + "/ping/", testing::ping(false));
  EXPECT_FALSE(written->open());
  loop.advance(4s);
  EXPECT_FALSE(snapshot()->complete());
  EXPECT_TRUE(written->open());
  EXPECT_FALSE(lost->open()) << "the request may still be carried out";
  loop.advance(2s);
  EXPECT_TRUE(lost->open());
  testing::serve_quiet_cluster(http);
  loop.advance(10000ms);
  EXPECT_TRUE(written->open());
  EXPECT_TRUE(lost->open());
}

TEST_F(RegistryTest, ARoundFromBeforeAWriteDoesNotEndASilence) {
  http.held = "/jobs/";
  add();
  loop.advance(1000ms);  // A round is under way and has read the nodes.
  ASSERT_EQ(http.waiting(), 1U);
  const auto gate = clusters.gate_from_now("default/c", "delete n1");
  const core::MonoTime written = loop.clock().mono();
  EXPECT_TRUE(gate->open());
  http.release();
  loop.run_ready();
  EXPECT_FALSE(snapshot()->complete()) << "it may show n1 still, and nothing holds the key back any more";
  loop.advance(2s);
  ASSERT_TRUE(snapshot()->complete());
  EXPECT_GT(snapshot()->requested_at, written);
}

TEST_F(RegistryTest, AGateAfterATimeWaitsForIt) {
  add();
  loop.advance(500ms);
  const auto gate = clusters.gate_after("default/c", loop.clock().mono() + 5s, "x");
  loop.advance(5s);
  EXPECT_FALSE(gate->open());
  loop.advance(2s);
  EXPECT_TRUE(gate->open());
}

TEST_F(RegistryTest, GatesOfARemovedClusterAreOpen) {
  add();
  loop.advance(500ms);
  const auto gate = clusters.gate_from_now("default/c", "x");
  clusters.remove("default/c");
  EXPECT_TRUE(gate->open());
  EXPECT_EQ(snapshot()->health, Snapshot::Health::kNone);
  EXPECT_TRUE(changes.back().health);
  EXPECT_EQ(changes.back().nodes, std::vector<std::string>{"n1"});
  const std::size_t told = changes.size();
  loop.advance(10000ms);
  EXPECT_EQ(changes.size(), told);
  EXPECT_EQ(loop.pending(), 0U) << "nothing is left running";
}

/// Two clusters, a and b, each with a slurmrestd, and one accounting database.
struct AccountingTest : RegistryTest {
  AccountingTest() {
    for (FakeTransport* rest : {&http, &other}) {
      testing::serve_quiet_cluster(*rest);
      rest->on("GET", kQos, qos("normal"));
    }
    both.listen_to_lists([this](const ListChange& change) {
      if (change.list == accounting::List::kQos) polls.push_back(change);
    });
    both.set("a", {"a", 6820}, "key");
    both.set("b", {"b", 6820}, "key");
    loop.advance(500ms);
  }
  static net::HttpResponse qos(const std::string& name) {
    return testing::ok(R"({"qos":[{"id":1,"name":")" + name + R"("}],"errors":[],)" + testing::meta() + "}");
  }
  [[nodiscard]] const auto& rows() const { return both.lists("db")->qos(); }

  const std::string kQos = "/slurmdb/v0.0.45/qos/";
  FakeTransport other{loop};
  Clusters both{loop, random, log,
                [this](const Endpoint& endpoint) { return std::make_unique<Link>(endpoint.host == "a" ? http : other); }};
  std::vector<ListChange> polls;
};

TEST_F(AccountingTest, IsAskedOverAClusterThatIsUp) {
  EXPECT_EQ(both.lists("db"), nullptr);
  EXPECT_EQ(both.accounting("db"), nullptr);
  both.set_accounting("db", {"a", "b"});
  loop.advance(500ms);
  EXPECT_EQ(rows().health, (accounting::Rows<std::string, accounting::Qos>::Health::kComplete));
  EXPECT_TRUE(rows().rows->contains("normal"));
  EXPECT_EQ(http.asked("GET", kQos), 1);
  EXPECT_EQ(http.asked("GET", "/openapi/v3"), 1) << "the cluster's connection has negotiated";
  ASSERT_EQ(polls.size(), 1U);
  EXPECT_EQ(polls[0].database, "db");
  EXPECT_TRUE(polls[0].changed);
  for (const char* query : {"", "?update_time="}) {
    http.on("GET", kBase + "/nodes/" + query,
            [](const net::HttpRequest&) -> FakeTransport::Answer { return core::fail(ErrorCode::kUnavailable, "refused"); });
  }
  loop.advance(5s);
  EXPECT_FALSE(both.snapshot("a")->complete());
  EXPECT_GE(other.asked("GET", kQos), 1);
  EXPECT_EQ(rows().error, "");
}

TEST_F(AccountingTest, GatesOpenWhenTheListWasReadAgain) {
  both.set_accounting("db", {"a"});
  loop.advance(500ms);
  http.held = kQos;
  loop.advance(1s);
  ASSERT_EQ(http.waiting(), 1U) << "a poll is under way";
  const auto written = both.gate_from_now("db", accounting::List::kQos, "add QOS x");
  const auto lost = both.gate_after("db", accounting::List::kQos, loop.clock().mono() + 5s, "y");
  EXPECT_EQ(written->describe(), "add QOS x");
  both.poll_soon("db", accounting::List::kQos);
  http.release();
  loop.run_ready();
  EXPECT_FALSE(written->open()) << "it may have been answered before the write";
  loop.advance(3s);
  EXPECT_TRUE(written->open());
  EXPECT_FALSE(lost->open());
  loop.advance(8s);
  EXPECT_TRUE(lost->open());
}

TEST_F(AccountingTest, GatesAreOpenWhileNobodyAnswersAndOfNoDatabase) {
  both.set_accounting("db", {"a"});
  loop.advance(500ms);
  http.held = kQos;
  loop.advance(1s);
  const auto gate = both.gate_from_now("db", accounting::List::kQos, "x");
  EXPECT_FALSE(gate->open());
  both.mark_stale();
  EXPECT_TRUE(gate->open());
  const core::MonoTime written = loop.clock().mono();
  http.release();
  loop.run_ready();
  EXPECT_EQ(rows().health, (accounting::Rows<std::string, accounting::Qos>::Health::kStale)) << "nothing holds the key back";
  loop.advance(3s);
  EXPECT_GT(rows().requested_at, written);
  EXPECT_EQ(rows().error, "");
  const auto another = both.gate_from_now("db", accounting::List::kQos, "x");
  both.remove_accounting("db");
  EXPECT_TRUE(another->open());
}

TEST_F(AccountingTest, WhoWaitsForADatabaseHasItsListsReadMoreOften) {
  both.set_accounting("db", {"a"});
  loop.advance(100ms);
  const int before = http.asked("GET", kQos);
  for (int i = 0; i < 10; ++i) {
    both.poll_often("db");
    loop.advance(200ms);
  }
  EXPECT_EQ(http.asked("GET", kQos), before + 4);
}

TEST_F(AccountingTest, IsUnknownWithoutAnyCluster) {
  both.set_accounting("db", {"nobody"});
  loop.advance(1ms);
  EXPECT_EQ(rows().health, (accounting::Rows<std::string, accounting::Qos>::Health::kNone));
  EXPECT_NE(rows().error, "");
  both.set_accounting("db", {"nobody", "b"});
  loop.advance(2s);
  EXPECT_TRUE(rows().rows->contains("normal"));
  both.remove("b");
  loop.advance(5s);
  EXPECT_EQ(rows().health, (accounting::Rows<std::string, accounting::Qos>::Health::kStale));
  EXPECT_TRUE(rows().rows->contains("normal"));
  both.remove_accounting("db");
  both.remove("a");
  EXPECT_EQ(both.lists("db"), nullptr);
  loop.advance(1s);
  EXPECT_EQ(loop.pending(), 0U) << "nothing is left running";
}

TEST_F(RegistryTest, TheSameAgainChangesNothingAndANewKeyReconnects) {
  add();
  loop.advance(500ms);
  add();
  EXPECT_EQ(endpoints.size(), 1U);
  clusters.set("default/c", {"restapi", 6820}, "other key");
  EXPECT_EQ(endpoints.size(), 2U);
  EXPECT_EQ(snapshot()->health, Snapshot::Health::kStale) << "of the connection before";
  EXPECT_NE(snapshot()->node("n1"), nullptr);
  loop.advance(500ms);
  EXPECT_TRUE(snapshot()->complete());
}

TEST_F(RegistryTest, ListenersMayLeaveWhileTheyAreTold) {
  Clusters::ListenerId id = 0;
  int calls = 0;
  id = clusters.listen([&](const Change&) {
    ++calls;
    clusters.unlisten(id);
  });
  add();
  loop.advance(3s);
  EXPECT_EQ(calls, 1);
  EXPECT_GE(changes.size(), 3U);
}

TEST_F(RegistryTest, AListenerMayRemoveTheClusterItIsToldOf) {
  clusters.listen([&](const Change& change) {
    if (change.now->complete()) clusters.remove("default/c");
  });
  add();
  loop.advance(3s);
  EXPECT_FALSE(clusters.contains("default/c"));
  EXPECT_EQ(rounds(), 1);
}

TEST_F(RegistryTest, LiveJobsAreTheSnapshotsWhenNothingChanged) {
  http.on("GET", kBase + "/jobs/", testing::jobs(R"({"job_id":7,"job_state":["RUNNING"],"nodes":"n1"})"));
  add();
  loop.advance(500ms);
  std::vector<std::shared_ptr<const Job>> rows;
  const auto ask = [&] {
    rows.clear();
    clusters.live_jobs("default/c", [&](auto jobs) {
      ASSERT_TRUE(jobs);
      rows = *jobs;
    });
    loop.advance(50ms);
  };
  ask();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_NE(http.log.back().target.find("update_time=100"), std::string::npos);
  http.on("GET", kBase + "/jobs/?update_time=", testing::jobs(R"({"job_id":8,"job_state":["RUNNING"],"nodes":"n1"})"));
  ask();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0]->id, 8);
}

TEST_F(RegistryTest, OneLiveReadOfJobsServesAllWhoAskedBeforeIt) {
  add();
  loop.advance(500ms);
  http.log.clear();
  http.held = "/jobs/";
  std::map<int, std::size_t> seen;
  const auto ask = [&](int who) {
    clusters.live_jobs("default/c", [&seen, who](auto jobs) {
      EXPECT_FALSE(seen.contains(who)) << "told twice";
      seen[who] = jobs ? jobs->size() : 999;
    });
  };
  for (int who = 0; who < 5; ++who) ask(who);
  loop.advance(5ms);
  EXPECT_EQ(http.asked("GET", kBase + "/jobs/"), 1);
  http.release();
  EXPECT_EQ(seen, (std::map<int, std::size_t>{{0, 0}})) << "the others asked after that request was sent";
  http.on("GET", kBase + "/jobs/?update_time=", testing::jobs(R"({"job_id":8,"job_state":["RUNNING"],"nodes":"n1"})"));
  loop.advance(5ms);
  EXPECT_EQ(http.asked("GET", kBase + "/jobs/"), 2);
  EXPECT_EQ(seen, (std::map<int, std::size_t>{{0, 0}, {1, 1}, {2, 1}, {3, 1}, {4, 1}}));
  ask(5);
  loop.advance(5ms);
  EXPECT_EQ(seen.size(), 6U);
}

TEST_F(RegistryTest, WhoWaitsForLiveJobsIsToldOfAFailureAndOfTheEnd) {
  add();
  loop.advance(500ms);
  http.held = "/jobs/";
  std::vector<std::optional<ErrorCode>> told(4);
  const auto ask = [&](std::size_t who) {
    clusters.live_jobs("default/c", [&told, who](auto jobs) {
      EXPECT_FALSE(told[who]) << "told twice";
      EXPECT_FALSE(jobs);
      told[who] = jobs ? ErrorCode::kInvalid : jobs.error().code;
    });
  };
  ask(0);
  ask(1);
  http.on("GET", kBase + "/jobs/?update_time=", testing::error(500, 1800, "away"));
  http.release();
  EXPECT_EQ(told[0], ErrorCode::kUnavailable);
  EXPECT_FALSE(told[1]);
  loop.advance(5ms);
  EXPECT_EQ(told[1], ErrorCode::kUnavailable);
  http.held = "/jobs/";
  ask(2);
  ask(3);
  clusters.remove("default/c");
  loop.advance(5ms);
  EXPECT_EQ(told[2], ErrorCode::kCancelled);
  EXPECT_EQ(told[3], ErrorCode::kCancelled);
}

}  // namespace
}  // namespace slurm
