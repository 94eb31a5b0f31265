#include "slurm/rest/target.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/testing/manual_loop.hpp"
#include "plan/testing/observing.hpp"
#include "slurm/acts.hpp"
#include "slurm/testing/fake_transport.hpp"
#include "slurm/testing/replies.hpp"

namespace slurm {
namespace {

using namespace std::chrono_literals;
using core::ErrorCode;
const std::string kBase = "/slurm/v0.0.45";

Node seen(std::string name, std::string reason = "") {
  Node out;
  out.name = std::move(name);
  out.reason = std::move(reason);
  return out;
}

struct TargetTest : ::testing::Test {
  TargetTest() {
    testing::serve_quiet_cluster(http);
    for (const char* method : {"POST", "DELETE"}) http.on(method, kBase + "/node", testing::done());
    http.on("GET", kBase + "/reconfigure/", testing::done());
    clusters.set("c", {"restapi", 6820}, "key");
    loop.advance(100ms);
    http.log.clear();
  }

  void live(const std::string& name, const std::string& states, const std::string& reason = "") {
    http.on("GET", kBase + "/node/" + name, testing::nodes(testing::node(name, states, reason)));
  }
  plan::ActResult run(plan::ActPtr act) {
    std::optional<plan::ActResult> out;
    target.execute(std::move(act), [&](plan::ActResult result) {
      EXPECT_FALSE(out) << "told twice";
      out = std::move(result);
    });
    EXPECT_FALSE(out) << "told from inside";
    loop.advance(50ms);
    EXPECT_TRUE(out) << "never told";
    return out ? *std::move(out) : plan::ActResult{core::fail(ErrorCode::kCancelled, "never told"), {}};
  }
  /// Expects that the act fails with `code` if `happens` is called while the act waits for slurmctld's list of jobs.
  void expect_failure_if(plan::ActPtr act, const std::function<void()>& happens, ErrorCode code) {
    http.held = "/jobs/";
    std::optional<plan::ActResult> told;
    target.execute(std::move(act), [&](plan::ActResult result) { told = std::move(result); });
    loop.advance(20ms);
    happens();
    http.release();
    loop.advance(20ms);
    ASSERT_TRUE(told);
    ASSERT_FALSE(told->value);
    EXPECT_EQ(told->value.error().code, code);
  }
  ErrorCode failure(plan::ActPtr act) {
    const auto result = run(std::move(act));
    if (result.value) {
      ADD_FAILURE() << "should fail, gave " << *result.value;
      return ErrorCode::kInternal;
    }
    return result.value.error().code;
  }
  /// Returns the bodies of all POST requests, in order.
  [[nodiscard]] std::vector<core::Json> posted() const {
    std::vector<core::Json> out;
    for (const auto& request : http.log) {
      if (request.method == "POST") out.push_back(*core::parse_json(request.body));
    }
    return out;
  }
  [[nodiscard]] int writes() const {
    return http.asked("POST", "/") + http.asked("DELETE", "/") + http.asked("GET", kBase + "/reconfigure");
  }

  [[nodiscard]] Drained drained();
  [[nodiscard]] DrainTimedOut timed_out(EndOfJobs how);

  core::ManualLoop loop;
  ZeroRandom random;
  core::NullLogger log;
  FakeTransport http{loop};
  std::optional<core::MonoTime> until = core::MonoTime{core::Duration::max()};  ///< The deadline for writes.
  Clusters clusters{loop, random,
                    log,  [this](const Endpoint&) { return std::make_unique<Link>(http); },
                    {},   {.write_deadline = [this] { return until; }}};
  Target target{loop, clusters};
};

/// Returns evidence, seen now, that n1 is drained.
Drained TargetTest::drained() {
  Snapshot snapshot;
  snapshot.health = Snapshot::Health::kComplete;
  snapshot.requested_at = loop.clock().mono();
  Node node;
  node.name = "n1";
  node.state = {"IDLE", {"DRAIN"}};
  snapshot.nodes[node.name] = std::make_shared<const Node>(node);
  return *Drained::of(plan::testing::Observer::at(loop.clock().mono()), snapshot, {"c", "n1"});
}

TEST_F(TargetTest, AsksSlurmdbdForItsClusters) {
  const std::string base = "/slurmdb/v0.0.45/";
  http.on("GET", base + "clusters/",
          testing::ok(R"({"clusters":[{"name":"c","controller":{"host":"10.0.0.1","port":6817}}],"errors":[],)" +
                      testing::meta() + "}"));
  const auto rows = run(read_accounting_clusters("c"));
  ASSERT_TRUE(rows.value);
  EXPECT_EQ(*rows.value, core::Json::array({{{"name", "c"}, {"host", "10.0.0.1"}, {"port", 6817}}}));
  EXPECT_TRUE(rows.gates.empty());

  http.on("GET", base + "clusters/", testing::error(500, 7000, "Unable to connect to database"));
  const auto refused = run(read_accounting_clusters("c"));
  ASSERT_FALSE(refused.value);
  EXPECT_EQ(refused.value.error().http_status, 500);
  EXPECT_NE(refused.value.error().message.find("Unable to connect to database"), std::string::npos);

  // The act finds out whether slurmdbd or slurmrestd does not answer.
  http.on("GET", base + "clusters/", [](const net::HttpRequest&) -> FakeTransport::Answer {
    return core::fail(ErrorCode::kUnknownOutcome, "silence after 12000 ms");
  });
  EXPECT_EQ(run(read_accounting_clusters("c")).value.error().reason, kSlurmdbdSilent);
  for (const std::string& path : {base + "clusters/", "/openapi/v3" + std::string(), kBase + "/ping/"}) {
    http.on("GET", path, [](const net::HttpRequest&) -> FakeTransport::Answer {
      return core::fail(ErrorCode::kUnavailable, "connection refused");
    });
  }
  const auto away = run(read_accounting_clusters("c"));
  ASSERT_FALSE(away.value);
  EXPECT_EQ(away.value.error().reason, "");
  EXPECT_EQ(away.value.error().http_status, 0);
  EXPECT_EQ(failure(read_accounting_clusters("unknown")), ErrorCode::kUnavailable);
}

TEST_F(TargetTest, KnowsItsActs) {
  struct Other final : plan::Act {
    [[nodiscard]] core::Json describe() const override { return {}; }
  };
  EXPECT_FALSE(target.handles(Other{}));
  for (const auto& act : {drain_nodes("c", Owner::kOperator, {"n"}, ""), resume_node("c", Owner::kOperator, "n"),
                          update_node("c", "n", {}), delete_node("c", Owner::kOperator, seen("n"), ""), reconfigure("c")}) {
    EXPECT_TRUE(target.handles(*act));
  }
}

TEST_F(TargetTest, DrainsWithOurReason) {
  live("n1", R"("IDLE")");
  const auto result = run(drain_nodes("c", Owner::kOperator, {"n1"}, "scale in"));
  ASSERT_TRUE(result.value);
  EXPECT_EQ(*result.value, (core::Json{{"drained", {"n1"}}, {"kept", core::Json::array()}}));
  EXPECT_EQ(posted(), (std::vector<core::Json>{{{"state", {"DRAIN"}}, {"reason", "slurm-operator: scale in"}}}));
  ASSERT_EQ(result.gates.size(), 1U);
}

TEST_F(TargetTest, AGateOpensWithTheNextSnapshot) {
  live("n1", R"("IDLE")");
  http.held = "/jobs/";
  std::vector<plan::GatePtr> gates;
  target.execute(drain_nodes("c", Owner::kOperator, {"n1"}, "x"), [&](plan::ActResult result) { gates = result.gates; });
  loop.advance(20ms);
  ASSERT_EQ(gates.size(), 1U);
  EXPECT_EQ(gates[0]->describe(), "drain n1");
  EXPECT_FALSE(gates[0]->open());
  http.release();
  loop.advance(5ms);
  EXPECT_TRUE(gates[0]->open()) << "a write polls at once";
}

TEST_F(TargetTest, LeavesEveryDrainAsItIs) {
  live("n1", R"("IDLE","DRAIN")", "bad disk");
  live("n2", R"("MIXED","DRAIN")", "slurm-operator: other");
  const auto result = run(drain_nodes("c", Owner::kOperator, {"n1", "n2"}, "scale in"));
  ASSERT_TRUE(result.value);
  EXPECT_EQ((*result.value)["kept"], (core::Json{"n1", "n2"}));
  EXPECT_EQ(writes(), 0);
}

TEST_F(TargetTest, ADrainStandsBesideThatOfAnotherProgram) {
  live("n1", R"("IDLE","DRAIN")", "slurm-bridge: pods run there");
  live("n2", R"("IDLE","DRAIN")", "slurm-operator: a; slurm-bridge: b");
  live("n3", R"("DOWN")", "slurm-bridge: c");
  live("n4", R"("IDLE")", "slurm-bridge: left over");
  const auto result = run(drain_nodes("c", Owner::kOperator, {"n1", "n2", "n3", "n4"}, "scale in"));
  ASSERT_TRUE(result.value);
  EXPECT_EQ(*result.value, (core::Json{{"drained", {"n1", "n3", "n4"}}, {"kept", {"n2"}}}));
  std::set<std::string> reasons;
  for (const core::Json& body : posted()) {
    EXPECT_EQ(body["state"], core::Json{"DRAIN"});
    reasons.insert(body["reason"]);
  }
  EXPECT_EQ(reasons, (std::set<std::string>{"slurm-operator: scale in; slurm-bridge: pods run there",
                                            "slurm-operator: scale in; slurm-bridge: c", "slurm-operator: scale in"}));
  EXPECT_EQ(http.asked("POST", kBase + "/node/n2"), 0);
}

TEST_F(TargetTest, WhatADownOfSlurmsOwnSaysOfHoldsIsLeftOver) {
  live("n1", R"("DOWN")", "slurm-bridge: x : Not responding");
  ASSERT_TRUE(run(resume_node("c", Owner::kOperator, "n1")).value);
  EXPECT_EQ(posted().back()["state"], core::Json::array({"RESUME"}));
  ASSERT_TRUE(run(drain_nodes("c", Owner::kOperator, {"n1"}, "y")).value);
  EXPECT_EQ(posted().back()["reason"], "slurm-operator: y");
}

TEST_F(TargetTest, ResumingTakesOneWordAndLeavesTheOther) {
  live("n1", R"("MIXED","DRAIN")", "slurm-operator: a; slurm-bridge: b");
  ASSERT_TRUE(run(resume_node("c", Owner::kOperator, "n1")).value);
  EXPECT_EQ(posted(), (std::vector<core::Json>{{{"state", {"DRAIN"}}, {"reason", "slurm-bridge: b"}}}));
  EXPECT_EQ(failure(resume_node("c", Owner::kEnlistment, "n1")), ErrorCode::kConflict);
  live("n1", R"("DOWN")", "slurm-operator: a; slurm-bridge: b");
  ASSERT_TRUE(run(resume_node("c", Owner::kBridge, "n1")).value);
  EXPECT_EQ(posted().back(), (core::Json{{"reason", "slurm-operator: a"}})) << "it stays down";
  live("n1", R"("IDLE","DRAIN")", "slurm-bridge: b");
  EXPECT_EQ(failure(resume_node("c", Owner::kOperator, "n1")), ErrorCode::kConflict) << "not the operator's";
  ASSERT_TRUE(run(resume_node("c", Owner::kBridge, "n1")).value);
  EXPECT_EQ(posted().back()["state"], core::Json{"UNDRAIN"});
}

TEST_F(TargetTest, ADownOfSomebodyElseKeepsItsReason) {
  live("n1", R"("DOWN")", "dead board");
  live("n2", R"("DOWN","NOT_RESPONDING")", "Not responding");
  live("n3", R"("DOWN")", "slurm-operator: pod ended");
  live("n4", R"("IDLE")", "slurm-operator: left over");
  ASSERT_TRUE(run(drain_nodes("c", Owner::kOperator, {"n1", "n2", "n3", "n4"}, "scale in")).value);
  const auto bodies = posted();
  ASSERT_EQ(bodies.size(), 2U);
  EXPECT_EQ(bodies[0]["name"].size(), 3U);
  EXPECT_EQ(bodies[0]["reason"], "slurm-operator: scale in");
  EXPECT_EQ(bodies[1], (core::Json{{"state", {"DRAIN"}}}));
  EXPECT_EQ(http.asked("POST", kBase + "/node/n1"), 1);
}

TEST_F(TargetTest, AFailKeepsItsReasonAndIsNotResumed) {
  live("n1", R"("IDLE","FAIL")", "ECC errors");
  live("n2", R"("MIXED","FAIL")");
  ASSERT_TRUE(run(drain_nodes("c", Owner::kOperator, {"n1", "n2"}, "scale in")).value);
  for (const core::Json& body : posted()) EXPECT_EQ(body, (core::Json{{"state", {"DRAIN"}}, {"name", body["name"]}}));
  const int before = writes();
  EXPECT_GT(before, 0);
  live("n3", R"("DOWN","FAIL")", "slurm-operator: Pod is terminating");
  EXPECT_EQ(failure(resume_node("c", Owner::kOperator, "n3")), ErrorCode::kConflict);
  EXPECT_EQ(writes(), before);
}

TEST_F(TargetTest, DrainsWhatIsThereAndNamesWhatIsNot) {
  live("n1", R"("IDLE")");
  http.on("GET", kBase + "/node/zz", testing::error(200, 0, "Failure to query node zz"));
  const auto result = run(drain_nodes("c", Owner::kOperator, {"zz", "n1"}, "x"));
  ASSERT_FALSE(result.value);
  EXPECT_EQ(result.value.error().code, ErrorCode::kNotFound);
  EXPECT_NE(result.value.error().message.find("zz"), std::string::npos);
  EXPECT_EQ(posted().size(), 1U);
  EXPECT_EQ(result.gates.size(), 1U) << "n1 was written";
}

TEST_F(TargetTest, ManyNodesAreReadAsOneTable) {
  std::string rows;
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) {
    names.push_back("n" + std::to_string(i));
    rows += (i == 0 ? "" : ",") + testing::node(names.back(), i == 7 ? R"("IDLE","DRAIN")" : R"("IDLE")");
  }
  http.on("GET", kBase + "/nodes/", testing::nodes(rows));
  ASSERT_TRUE(run(drain_nodes("c", Owner::kOperator, names, "x")).value);
  ASSERT_EQ(posted().size(), 1U);
  EXPECT_EQ(posted()[0]["name"].size(), 19U);
  EXPECT_EQ(http.asked("GET", kBase + "/node/"), 0);
}

TEST_F(TargetTest, ADrainThatCannotReadDoesNotWrite) {
  live("n1", R"("IDLE")");
  http.on("GET", kBase + "/node/n2", testing::error(500, 1802, "Failure to query node n2"));
  EXPECT_EQ(failure(drain_nodes("c", Owner::kOperator, {"n1", "n2"}, "x")), ErrorCode::kUnavailable);
  EXPECT_EQ(writes(), 0);
  EXPECT_EQ(failure(drain_nodes("c", Owner::kOperator, {}, "x")), ErrorCode::kInvalid);
}

TEST_F(TargetTest, ResumesOurDrainAndOurDown) {
  live("n1", R"("IDLE","DRAIN")", "slurm-operator: scale in");
  EXPECT_TRUE(run(resume_node("c", Owner::kOperator, "n1")).value);
  live("n1", R"("DOWN","NOT_RESPONDING")", "slurm-operator: pod ended");
  EXPECT_TRUE(run(resume_node("c", Owner::kOperator, "n1")).value);
  live("n1", R"("DOWN","DRAIN")", "slurm-operator: pod ended");
  EXPECT_TRUE(run(resume_node("c", Owner::kOperator, "n1")).value);
  const auto bodies = posted();
  ASSERT_EQ(bodies.size(), 3U);
  EXPECT_EQ(bodies[0]["state"], (core::Json{"UNDRAIN"}));
  EXPECT_EQ(bodies[1]["state"], (core::Json{"RESUME"}));
  EXPECT_EQ(bodies[2]["state"], (core::Json{"RESUME"}));
  for (const core::Json& body : bodies) EXPECT_EQ(body["reason"], "Not responding") << "Slurm writes over that, and we do not";
}

TEST_F(TargetTest, ResumingANodeInServiceTakesOnlyItsReason) {
  live("n1", R"("IDLE")", "slurm-enlist: joining");
  ASSERT_TRUE(run(resume_node("c", Owner::kEnlistment, "n1", "slurm-enlist: joining")).value);
  EXPECT_EQ(posted(), (std::vector<core::Json>{{{"reason", "Not responding"}}}));
  EXPECT_EQ(failure(resume_node("c", Owner::kBridge, "n1")), ErrorCode::kConflict);
  live("n1", R"("IDLE")", "slurm-bridge: b; slurm-enlist: joining");
  EXPECT_EQ(failure(resume_node("c", Owner::kEnlistment, "n1")), ErrorCode::kConflict);
  EXPECT_EQ(posted().size(), 1U);
}

TEST_F(TargetTest, ResumesNothingThatWasSaidSince) {
  live("n1", R"("DOWN","DRAIN")", "slurm-operator: Pod is terminating (uid)");
  EXPECT_EQ(run(resume_node("c", Owner::kOperator, "n1", "slurm-operator: scale in")).value.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(posted().empty());
  EXPECT_TRUE(run(resume_node("c", Owner::kOperator, "n1", "slurm-operator: Pod is terminating (uid)")).value);
}

TEST_F(TargetTest, ResumesADownOfSlurmsOwn) {
  for (const char* reason :
       {"Not responding", "Not responding : Not responding", "left over : Not responding", "Node unexpectedly rebooted"}) {
    live("n1", R"("DOWN")", reason);
    EXPECT_TRUE(run(resume_node("c", Owner::kOperator, "n1")).value) << reason;
    live("n1", R"("DOWN","DRAIN")", reason);
    EXPECT_EQ(failure(resume_node("c", Owner::kOperator, "n1")), ErrorCode::kConflict)
        << "somebody drained it and gave no reason";
  }
}

TEST_F(TargetTest, EndsOnlyANodeOfOurDrainAndOfTheSlurmdThatWasSeen) {
  const auto act = [](std::int64_t seconds) {
    return end_node(Owner::kOperator,
                    {plan::testing::Observer::at({}), {"c", "n1"}, core::WallTime{std::chrono::seconds{seconds}}, "", {}});
  };
  const auto node = [&](const std::string& states, const std::string& reason) {
    http.on("GET", kBase + "/node/n1",
            testing::nodes(R"({"name":"n1","state":[)" + states + R"(],"reason":")" + reason +
                           R"(","slurmd_start_time":{"set":true,"infinite":false,"number":1000}})"));
  };
  node(R"("MIXED","DRAIN")", "slurm-operator: Pod is gone");
  EXPECT_EQ(failure(act(999)), ErrorCode::kConflict) << "its successor's";
  EXPECT_EQ(failure(act(1001)), ErrorCode::kConflict);
  node(R"("MIXED")", "slurm-operator: Pod is gone");
  EXPECT_EQ(failure(act(1000)), ErrorCode::kConflict);
  node(R"("MIXED","DRAIN")", "bad disk");
  EXPECT_EQ(failure(act(1000)), ErrorCode::kConflict);
  EXPECT_EQ(writes(), 0);
  node(R"("DOWN","DRAIN")", "slurm-operator: Pod is gone");
  EXPECT_TRUE(run(act(1000)).value);
  EXPECT_EQ(writes(), 0) << "nothing is left to do";
  node(R"("MIXED","DRAIN")", "slurm-operator: Pod is gone");
  EXPECT_TRUE(run(act(1000)).value);
  ASSERT_EQ(posted().size(), 1U);
  EXPECT_EQ(posted()[0], (core::Json{{"state", {"DOWN"}}, {"reason", "slurm-operator: Pod is gone"}}));
}

constexpr const char* kOurDrain = "slurm-operator: scale in";
std::string job_row(int id, const std::string& nodes, const std::string& more = "") {
  return R"({"job_id":)" + std::to_string(id) + R"(,"job_state":["RUNNING"],"nodes":")" + nodes +
         R"(","batch_flag":true,"requeue":true)" + more + "}";
}

/// Returns evidence that n1 has been drained for "scale in" longer than allowed while jobs 1 and 2 run there.
DrainTimedOut TargetTest::timed_out(EndOfJobs how) {
  Snapshot snapshot;
  snapshot.health = Snapshot::Health::kComplete;
  snapshot.requested_at = loop.clock().mono();
  Node node = seen("n1", kOurDrain);
  node.state = {"MIXED", {"DRAIN"}};
  snapshot.nodes[node.name] = std::make_shared<const Node>(node);
  for (const std::int64_t id : {1, 2}) {
    Job job;
    job.id = id;
    job.state = "RUNNING";
    job.nodes = {"n1"};
    job.batch = job.requeue = true;
    snapshot.jobs[id] = std::make_shared<const Job>(job);
  }
  return *DrainTimedOut::of(plan::testing::Observer::at(loop.clock().mono()), snapshot, {"c", "n1"}, Owner::kOperator,
                            "scale in", how, "4h");
}

TEST_F(TargetTest, EndsTheJobsOfADrainThatTimedOut) {
  http.on("DELETE", kBase + "/job/", testing::done());
  http.on("POST", kBase + "/jobs/requeue", testing::done());
  http.on("GET", kBase + "/jobs/?update_time=", testing::jobs(job_row(1, "n1") + "," + job_row(2, "n[1-2]")));
  live("n1", R"("MIXED","DRAIN")", kOurDrain);
  EXPECT_EQ(*run(end_jobs(timed_out(EndOfJobs::kCancel))).value, (core::Json{{"ended", {"2", "1"}}}));
  EXPECT_EQ(http.asked("DELETE", kBase + "/job/"), 2);
  EXPECT_TRUE(run(end_jobs(timed_out(EndOfJobs::kRequeue))).value);
  ASSERT_EQ(posted().size(), 2U);
  EXPECT_EQ(posted()[1]["jobs"], (core::Json{"1"}));
  EXPECT_EQ(http.asked("DELETE", kBase + "/job/"), 2) << "what is requeued is not cancelled";
}

TEST_F(TargetTest, OnlyJobsOfTheEvidenceThatStillRunThereAreEnded) {
  http.on("DELETE", kBase + "/job/", testing::done());
  live("n1", R"("MIXED","DRAIN")", kOurDrain);
  const std::string begun_anew = R"(,"start_time":{"set":true,"infinite":false,"number":7})";
  http.on("GET", kBase + "/jobs/",
          testing::jobs(job_row(1, "n2") + "," + job_row(2, "n1", begun_anew) + "," + job_row(3, "n1")));
  EXPECT_EQ(*run(end_jobs(timed_out(EndOfJobs::kCancel))).value, (core::Json{{"ended", core::Json::array()}}));
  EXPECT_EQ(writes(), 0) << "one moved, one was started anew, and one was not seen";
}

TEST_F(TargetTest, WhatIsNotDrainedForThatAnyMoreKeepsItsJobs) {
  http.on("DELETE", kBase + "/job/", testing::done());
  http.on("GET", kBase + "/jobs/?update_time=", testing::jobs(job_row(1, "n1")));
  for (const char* reason :
       {"bad disk", "slurm-operator: Node (a) was cordoned", "slurm-operator: scale in; slurm-bridge: x"}) {
    live("n1", R"("MIXED","DRAIN")", reason);
    EXPECT_EQ(failure(end_jobs(timed_out(EndOfJobs::kCancel))), ErrorCode::kConflict) << reason;
  }
  live("n1", R"("MIXED")", kOurDrain);
  EXPECT_EQ(failure(end_jobs(timed_out(EndOfJobs::kCancel))), ErrorCode::kConflict);
  const DrainTimedOut old = timed_out(EndOfJobs::kCancel);
  live("n1", R"("MIXED","DRAIN")", kOurDrain);
  loop.advance(kFresh + 1s);
  EXPECT_EQ(failure(end_jobs(old)), ErrorCode::kExpired);
  http.on("GET", kBase + "/jobs/?update_time=", testing::error(500, -1, "unwell"));
  EXPECT_EQ(failure(end_jobs(timed_out(EndOfJobs::kCancel))), ErrorCode::kInternal);
  EXPECT_EQ(writes(), 0);
}

TEST_F(TargetTest, AReasonOfOursGivesWayToAnother) {
  live("n1", R"("MIXED","DRAIN")", "slurm-operator: Node (a) was cordoned");
  EXPECT_TRUE(run(drain_nodes("c", Owner::kOperator, {"n1"}, "scale in")).value);
  EXPECT_EQ(writes(), 0);
  EXPECT_TRUE(run(drain_nodes("c", Owner::kOperator, {"n1"}, "scale in", true)).value);
  live("n1", R"("MIXED","DRAIN")", "slurm-operator: Node (a) was cordoned; slurm-bridge: x");
  EXPECT_TRUE(run(drain_nodes("c", Owner::kOperator, {"n1"}, "scale in", true)).value);
  live("n1", R"("MIXED","DRAIN")", "bad disk");
  EXPECT_TRUE(run(drain_nodes("c", Owner::kOperator, {"n1"}, "scale in", true)).value);
  ASSERT_EQ(posted().size(), 2U) << "a person's reason stays";
  EXPECT_EQ(posted()[0]["reason"], "slurm-operator: scale in");
  EXPECT_EQ(posted()[1]["reason"], "slurm-operator: scale in; slurm-bridge: x");
}

TEST_F(TargetTest, TheHoldsOfSeveralInstallationsStandSideBySide) {
  const Holder here{Owner::kBridge, "u1"}, there{Owner::kBridge, "u2"};
  live("n1", R"("IDLE","DRAIN")", "slurm-bridge: a, cluster u1");
  ASSERT_TRUE(run(drain_nodes("c", there, {"n1"}, "b", true)).value);
  EXPECT_EQ(posted().back()["reason"], "slurm-bridge: a, cluster u1; slurm-bridge: b, cluster u2");
  EXPECT_EQ(failure(resume_node("c", there, "n1")), ErrorCode::kConflict) << "the other one's";
  live("n1", R"("IDLE","DRAIN")", "slurm-bridge: a, cluster u1; slurm-bridge: b, cluster u2");
  ASSERT_TRUE(run(resume_node("c", here, "n1")).value);
  EXPECT_EQ(posted().back(), (core::Json{{"state", {"DRAIN"}}, {"reason", "slurm-bridge: b, cluster u2"}}));
  ASSERT_TRUE(run(drain_nodes("c", here, {"n1"}, "c", true)).value);
  EXPECT_EQ(posted().back()["reason"], "slurm-bridge: c, cluster u1; slurm-bridge: b, cluster u2");
  live("n1", R"("IDLE","DRAIN")", "slurm-bridge: a");
  ASSERT_TRUE(run(drain_nodes("c", here, {"n1"}, "c", true)).value);
  EXPECT_EQ(posted().back()["reason"], "slurm-bridge: c, cluster u1") << "earlier releases named none";
}

TEST_F(TargetTest, RefusesToUndoWhatIsNotOurs) {
  for (const char* reason : {"", "bad disk", "Not responding", "slurm-operator"}) {
    live("n1", R"("IDLE","DRAIN")", reason);
    EXPECT_EQ(failure(resume_node("c", Owner::kOperator, "n1")), ErrorCode::kConflict) << reason;
  }
  live("n1", R"("DOWN")", "dead board");
  EXPECT_EQ(failure(resume_node("c", Owner::kOperator, "n1")), ErrorCode::kConflict);
  // Before 26.05 the reason of an earlier drain stays on the node. The act must not undrain the idle node, because the node
  // would then stop responding for a while.
  live("n1", R"("IDLE")", "slurm-operator: left over");
  EXPECT_EQ(failure(resume_node("c", Owner::kOperator, "n1")), ErrorCode::kConflict);
  http.on("GET", kBase + "/node/n1", testing::error(200, 0, "Failure to query node n1"));
  EXPECT_EQ(failure(resume_node("c", Owner::kOperator, "n1")), ErrorCode::kNotFound);
  EXPECT_EQ(writes(), 0);
}

TEST_F(TargetTest, UpdatesOnlyWhatDiffersAndNeverState) {
  http.on("GET", kBase + "/node/n1", testing::nodes(R"({"name":"n1","state":["IDLE"],"comment":"a","features":["x"]})"));
  NodeUpdate update;
  update.comment = "a";
  update.features = {"x"};
  EXPECT_EQ(*run(update_node("c", "n1", update)).value, (core::Json{{"updated", false}}));
  EXPECT_EQ(writes(), 0);
  update.comment = "b";
  EXPECT_EQ(*run(update_node("c", "n1", update)).value, (core::Json{{"updated", true}}));
  EXPECT_EQ(posted().size(), 1U);
  update.state = "IDLE";
  EXPECT_EQ(failure(update_node("c", "n1", update)), ErrorCode::kInvalid);
  EXPECT_EQ(posted().size(), 1U);
}

TEST_F(TargetTest, ReplacesItsOwnFeaturesAloneAndCarriesTheTopology) {
  http.on("GET", kBase + "/node/n1",
          testing::nodes(R"({"name":"n1","state":["IDLE"],"features":["theirs","k8s/old","off"],"active_features":["theirs",)"
                         R"("k8s/old"],"topology":"default:s1"})"));
  const OwnFeatures own{"k8s/", {"k8s/new"}, {"cpu"}, {}};
  EXPECT_EQ(*run(update_node("c", "n1", {}, own)).value, (core::Json{{"updated", true}}));
  ASSERT_EQ(posted().size(), 1U);
  EXPECT_EQ(posted()[0], (core::Json{{"features", {"cpu", "theirs", "off", "k8s/new"}},
                                     {"features_act", {"cpu", "theirs", "k8s/new"}},
                                     {"topology_str", "default:s1"}}));
  NodeUpdate other;
  other.topology = "default:s2";
  run(update_node("c", "n1", other, OwnFeatures{"k8s/", {"k8s/old"}, {}, {}}));
  ASSERT_EQ(posted().size(), 2U);
  EXPECT_EQ(posted()[1], (core::Json{{"topology_str", "default:s2"}}));
  other.topology = "default:s1";
  EXPECT_EQ(*run(update_node("c", "n1", other)).value, (core::Json{{"updated", false}}));
  run(update_node("c", "n1", {}, OwnFeatures{"", {}, {"cpu", "new"}, {"off", "theirs"}}));
  ASSERT_EQ(posted().size(), 3U);
  EXPECT_EQ(posted()[2], (core::Json{{"features", {"cpu", "new", "k8s/old"}},
                                     {"features_act", {"cpu", "new", "k8s/old"}},
                                     {"topology_str", "default:s1"}}));
}

TEST_F(TargetTest, DeletesANodeThatNothingHolds) {
  live("n1", R"("IDLE","DRAIN")", "slurm-operator: x");
  const auto result = run(delete_node("c", Owner::kOperator, seen("n1"), "scaled in"));
  ASSERT_TRUE(result.value);
  EXPECT_EQ(*result.value, (core::Json{{"deleted", true}}));
  EXPECT_EQ(http.asked("DELETE", kBase + "/node/n1"), 1);
  EXPECT_EQ(result.gates.size(), 1U);
}

TEST_F(TargetTest, ANodeForWhichAJobWaitsByItsNameIsNotDeletedByEnlistment) {
  live("n1", R"("IDLE","DRAIN")", "slurm-enlist: leaving");
  const auto awaits = [this](const std::string& nodes) {
    http.on("GET", kBase + "/jobs/?update_time=",
            testing::jobs(R"({"job_id":9,"job_state":["PENDING"],"nodes":"","required_nodes":")" + nodes + R"("})"));
    return run(delete_node("c", Owner::kEnlistment, seen("n1", "slurm-enlist: leaving"), "x"));
  };
  const auto result = awaits("n[1-99999]");
  ASSERT_FALSE(result.value);
  EXPECT_EQ(result.value.error().code, ErrorCode::kBusy);
  EXPECT_EQ(result.value.error().message, "delete n1: job 9 (PENDING) holds it, or waits for it by its name");
  EXPECT_EQ(writes(), 0);
  EXPECT_TRUE(awaits("n2").value);
  EXPECT_EQ(writes(), 1);
}

TEST_F(TargetTest, AnUnknownNodeCountsAsDeleted) {
  http.on("GET", kBase + "/node/n1", testing::error(200, 0, "Failure to query node n1"));
  EXPECT_EQ(*run(delete_node("c", Owner::kOperator, seen("n1"), "x")).value, (core::Json{{"deleted", false}}));
  EXPECT_EQ(writes(), 0);
  live("n1", R"("DOWN")");
  http.on("DELETE", kBase + "/node/n1", testing::error(422, 2018, "Failure to delete node n1"));
  EXPECT_EQ(*run(delete_node("c", Owner::kOperator, seen("n1"), "x")).value, (core::Json{{"deleted", false}}));
}

TEST_F(TargetTest, ANodeThatOnlyTheSnapshotHasIsAReasonToAskForAllOfThem) {
  const auto whole = [this] {
    return std::ranges::count_if(http.log, [](const auto& request) { return request.target == kBase + "/nodes/"; });
  };
  for (const char* name : {"n1", "n2"}) {
    http.on("GET", kBase + "/node/" + name, testing::error(200, 0, "Failure to query node"));
  }
  run(delete_node("c", Owner::kOperator, seen("n2"), "x"));
  loop.advance(1100ms);
  EXPECT_EQ(whole(), 0) << "the snapshot does not have it either";
  run(delete_node("c", Owner::kOperator, seen("n1"), "x"));
  loop.advance(1100ms);
  EXPECT_EQ(whole(), 1);
}

TEST_F(TargetTest, ARecordThatSomebodyElseTookFromWorkSinceIsKept) {
  live("n1", R"("IDLE","DRAIN")", "bad disk");
  EXPECT_EQ(failure(delete_node("c", Owner::kOperator, seen("n1", "slurm-operator: x"), "x")), ErrorCode::kConflict);
  EXPECT_EQ(failure(delete_node(Owner::kOperator, drained(), "x")), ErrorCode::kConflict);
  live("n1", R"("IDLE","DRAIN")", "slurm-operator: x; slurm-bridge: pods run there");
  EXPECT_EQ(failure(delete_node(Owner::kOperator, drained(), "x")), ErrorCode::kConflict);
  EXPECT_EQ(writes(), 0);
  EXPECT_TRUE(
      run(delete_node("c", Owner::kOperator, seen("n1", "slurm-operator: x; slurm-bridge: pods run there"), "x")).value);
  live("n1", R"("DOWN","DRAIN")", "slurm-operator: x : Not responding");
  EXPECT_TRUE(run(delete_node("c", Owner::kOperator, seen("n1", "slurm-operator: x"), "x")).value)
      << "that is slurmctld's word";
  live("n1", R"("IDLE","FAIL")", "ECC errors");
  EXPECT_EQ(failure(delete_node("c", Owner::kOperator, seen("n1", "slurm-operator: x"), "x")), ErrorCode::kConflict);
  live("n1", R"("IDLE")", "left over");
  EXPECT_TRUE(run(delete_node("c", Owner::kOperator, seen("n1"), "x")).value) << "nobody keeps it from work";
}

TEST_F(TargetTest, EachProgramEndsAndDeletesNodesOfItsOwnDrain) {
  const auto end = [](Owner owner) {
    return end_node(owner, {plan::testing::Observer::at({}), {"c", "n1"}, core::WallTime{std::chrono::seconds{1000}}, "", {}});
  };
  http.on("GET", kBase + "/node/n1",
          testing::nodes(R"({"name":"n1","state":["IDLE","DRAIN"],"reason":"slurm-bridge: its host is going",)"
                         R"("slurmd_start_time":{"set":true,"infinite":false,"number":1000}})"));
  EXPECT_EQ(failure(end(Owner::kOperator)), ErrorCode::kConflict);
  EXPECT_EQ(failure(delete_node("c", Owner::kOperator, seen("n1"), "x")), ErrorCode::kConflict);
  EXPECT_EQ(writes(), 0);
  EXPECT_TRUE(run(end(Owner::kBridge)).value);
  EXPECT_TRUE(run(delete_node("c", Owner::kBridge, seen("n1"), "x")).value);
  EXPECT_EQ(writes(), 2);
}

TEST_F(TargetTest, ASuspendedJobKeepsANodeFromDeletion) {
  live("n1", R"("IDLE","DRAIN")");
  http.on("GET", kBase + "/jobs/?update_time=", testing::jobs(R"({"job_id":9,"job_state":["SUSPENDED"],"nodes":"n[0-1]"})"));
  const auto result = run(delete_node("c", Owner::kOperator, seen("n1"), "x"));
  ASSERT_FALSE(result.value);
  EXPECT_EQ(result.value.error().code, ErrorCode::kBusy);
  EXPECT_NE(result.value.error().message.find("job 9 (SUSPENDED)"), std::string::npos);
  EXPECT_EQ(writes(), 0);
}

TEST_F(TargetTest, EvidenceThatHasGrownOldIsNotActedOn) {
  live("n1", R"("IDLE","DRAIN")", "slurm-operator: x");
  const Drained evidence = drained();
  const SlurmdEnded ended(plan::testing::Observer::at({}), {"c", "n1"}, {}, "its pod is gone", evidence.good_until());
  loop.advance(*evidence.good_until() - loop.clock().mono());
  EXPECT_TRUE(run(confirm_idle(evidence)).value);
  for (const auto& act :
       {confirm_idle(evidence), delete_node(Owner::kOperator, evidence, "x"), end_node(Owner::kOperator, ended)}) {
    const auto refused = run(act);
    ASSERT_FALSE(refused.value) << act->describe();
    EXPECT_EQ(refused.value.error().code, ErrorCode::kExpired) << act->describe();
    EXPECT_NE(refused.value.error().message.find("too old by now: "), std::string::npos);
  }
  EXPECT_EQ(writes(), 0);
  EXPECT_TRUE(run(delete_node(Owner::kOperator, drained(), "x")).value) << "a later answer says the same";
}

TEST_F(TargetTest, AConfirmedNodeIsLookedAtAfterTheJobs) {
  live("n1", R"("IDLE","DRAIN")", "slurm-operator: x");
  EXPECT_TRUE(run(confirm_idle(drained())).value);
  const auto a_job_begins = [this] { live("n1", R"("MIXED","DRAIN")", "slurm-operator: x"); };
  expect_failure_if(confirm_idle(drained()), a_job_begins, ErrorCode::kBusy);
  for (const char* states : {R"("IDLE","DRAIN","COMPLETING")", R"("ALLOCATED","DRAIN")"}) {
    live("n1", states, "slurm-operator: x");
    EXPECT_EQ(failure(confirm_idle(drained())), ErrorCode::kBusy) << states;
  }
  live("n1", R"("IDLE")");
  EXPECT_EQ(failure(confirm_idle(drained())), ErrorCode::kConflict);
  http.on("GET", kBase + "/node/n1", testing::error(200, 0, "Failure to query node n1"));
  EXPECT_EQ(failure(confirm_idle(drained())), ErrorCode::kConflict)
      << "a slurmd that registers now is a new node, and gets jobs";
}

TEST_F(TargetTest, NoJobIsOneThatNeitherRunsNorWaits) {
  for (const char* state : {"PENDING", "RUNNING", "SUSPENDED"}) {
    http.on(
        "GET", kBase + "/jobs/?update_time=",
        testing::jobs(R"({"job_id":8,"job_state":["COMPLETED"]},{"job_id":9,"job_state":[")" + std::string(state) + "\"]}"));
    const auto result = run(confirm_no_jobs("c"));
    ASSERT_FALSE(result.value) << state;
    EXPECT_EQ(result.value.error().code, ErrorCode::kBusy);
    EXPECT_NE(result.value.error().message.find("job 9 (" + std::string(state) + ")"), std::string::npos);
  }
  http.on("GET", kBase + "/jobs/?update_time=", testing::jobs(R"({"job_id":8,"job_state":["COMPLETED"]})"));
  EXPECT_TRUE(run(confirm_no_jobs("c")).value);
  EXPECT_EQ(writes(), 0);
}

TEST_F(TargetTest, AJobStartsWhileItsPrologRunsOrItsNodesAreConfigured) {
  const std::string running = R"("job_state":["RUNNING"],"state_reason":)";
  for (const std::string& row :
       {running + "\"Prolog\"", std::string(R"("job_state":["RUNNING","CONFIGURING"],"state_reason":"None")")}) {
    http.on("GET",
            kBase + "/jobs/?update_time=", testing::jobs(R"({"job_id":8,)" + running + R"("None"},{"job_id":9,)" + row + "}"));
    const auto result = run(confirm_none_starts("c"));
    ASSERT_FALSE(result.value) << row;
    EXPECT_EQ(result.value.error().code, ErrorCode::kBusy);
    EXPECT_NE(result.value.error().message.find("job 9 (RUNNING) is starting"), std::string::npos);
  }
  http.on(
      "GET", kBase + "/jobs/?update_time=",
      testing::jobs(R"({"job_id":8,)" + running + R"("None"},{"job_id":9,"job_state":["PENDING"],"state_reason":"Prolog"})"));
  EXPECT_TRUE(run(confirm_none_starts("c")).value);
  EXPECT_EQ(writes(), 0);
}

TEST_F(TargetTest, DeletionsThatBeginTogetherShareTheirLookAtTheJobs) {
  int deleted = 0;
  for (int i = 0; i < 9; ++i) {
    const std::string name = "n" + std::to_string(i);
    live(name, R"("IDLE","DRAIN")");
    target.execute(delete_node("c", Owner::kOperator, seen(name), "x"),
                   [&](const plan::ActResult& result) { deleted += result.value ? 1 : 0; });
  }
  http.on("GET", kBase + "/jobs/?update_time=", testing::jobs(R"({"job_id":9,"job_state":["SUSPENDED"],"nodes":"n[3-4]"})"));
  loop.advance(10ms);
  EXPECT_EQ(deleted, 7);
  EXPECT_EQ(writes(), 7);
  EXPECT_LE(http.asked("GET", kBase + "/jobs/"), 3) << "two, and that of a poll after the first write";
}

TEST_F(TargetTest, ADeletionThatCannotSeeTheJobsDoesNotDelete) {
  live("n1", R"("IDLE","DRAIN")");
  http.on("GET", kBase + "/jobs/", testing::error(500, 1802, "Unable to query jobs"));
  http.on("GET", kBase + "/jobs/?update_time=", testing::error(500, 1802, "Unable to query jobs"));
  EXPECT_EQ(failure(delete_node("c", Owner::kOperator, seen("n1"), "x")), ErrorCode::kUnavailable);
  EXPECT_EQ(writes(), 0);
}

TEST_F(TargetTest, SlurmsBusyIsBusy) {
  live("n1", R"("IDLE","DRAIN","COMPLETING")");
  http.on("DELETE", kBase + "/node/n1", testing::error(500, 2016, "Failure to delete node n1"));
  const auto result = run(delete_node("c", Owner::kOperator, seen("n1"), "x"));
  ASSERT_FALSE(result.value);
  EXPECT_EQ(result.value.error().code, ErrorCode::kBusy);
  EXPECT_EQ(result.value.error().reason, "2016");
}

TEST_F(TargetTest, WhatWasSilentIsLookedAtLive) {
  for (const char* state : {R"("DOWN")", R"("IDLE","NOT_RESPONDING")", R"("IDLE","DRAIN")"}) {
    live("n1", state);
    EXPECT_EQ(failure(delete_node("c", Owner::kOperator, seen("n1"), "x", NodeEvidence::Live::kSilent)), ErrorCode::kConflict)
        << state;
  }
  EXPECT_EQ(writes(), 0);
  live("n1", R"("DOWN","NOT_RESPONDING","DYNAMIC_NORM")");
  EXPECT_TRUE(run(delete_node("c", Owner::kOperator, seen("n1"), "x", NodeEvidence::Live::kSilent)).value);
  EXPECT_EQ(writes(), 1);
}

TEST_F(TargetTest, ANodeIsLookedAtAfterTheJobsBeforeItIsDeleted) {
  live("n1", R"("IDLE","DRAIN")", "slurm-operator: x");
  const auto an_administrator_drains_it = [this] { live("n1", R"("IDLE","DRAIN")", "bad disk"); };
  expect_failure_if(delete_node(Owner::kOperator, drained(), "x"), an_administrator_drains_it, ErrorCode::kConflict);
  EXPECT_EQ(writes(), 0);
}

TEST_F(TargetTest, DeletionMayExpectANodeThatTakesNoWork) {
  live("n1", R"("IDLE")");
  EXPECT_EQ(failure(delete_node("c", Owner::kOperator, seen("n1"), "x", NodeEvidence::Live::kKept)), ErrorCode::kConflict);
  EXPECT_EQ(writes(), 0);
  for (const char* states : {R"("DOWN","NOT_RESPONDING")", R"("IDLE","FAIL")"}) {
    live("n1", states);
    EXPECT_TRUE(run(delete_node("c", Owner::kOperator, seen("n1"), "x", NodeEvidence::Live::kKept)).value) << states;
  }
}

TEST_F(TargetTest, DeletionMayExpectADrain) {
  for (const char* states : {R"("DOWN")", R"("IDLE","DRAIN","UNDRAIN")", R"("IDLE","FAIL")"}) {
    live("n1", states, "bad disk");
    EXPECT_EQ(failure(delete_node("c", Owner::kOperator, seen("n1", "bad disk"), "x", NodeEvidence::Live::kDrained)),
              ErrorCode::kConflict)
        << states;
  }
  EXPECT_EQ(writes(), 0);
  live("n1", R"("DOWN","DRAIN")", "bad disk");
  EXPECT_TRUE(run(delete_node("c", Owner::kOperator, seen("n1", "bad disk"), "x", NodeEvidence::Live::kDrained)).value);
}

TEST_F(TargetTest, AReasonIsRestoredWhereNobodyHasChangedItSince) {
  live("n1", R"("IDLE","DRAIN")", "one word");
  ASSERT_TRUE(run(restore_reason("c", seen("n1", "one word"), "bad \"disk\"")).value);
  EXPECT_EQ(posted().back(), (core::Json{{"reason", "bad \"disk\""}}));
  EXPECT_EQ(writes(), 1);
  EXPECT_EQ(failure(restore_reason("c", seen("n1", "another"), "bad disk")), ErrorCode::kConflict);
  live("n1", R"("IDLE")", "one word");
  EXPECT_EQ(failure(restore_reason("c", seen("n1", "one word"), "bad disk")), ErrorCode::kConflict);
  EXPECT_EQ(writes(), 1);
}

// --- Nodes that our programs create -------------------------------------------------------------------------------------

const NodeWish kWish{.name = "x", .address = "10.0.0.7", .cpus = 4, .real_memory_mib = 8000, .gpus = 0, .features = {"batch"}};
const NodeMark kMark{Owner::kBridge, "uid", made_of(kWish)};

std::string own_row(const std::string& states, const std::string& reason, const std::string& mark = kMark.feature()) {
  return R"({"name":"x","state":["EXTERNAL",)" + states + R"(],"reason":")" + reason + R"(","features":[")" + mark +
         R"(","batch"],"active_features":[")" + mark + R"(","batch"]})";
}

TEST_F(TargetTest, CreatesANodeThatSlurmDoesNotHave) {
  http.on("GET", kBase + "/node/x", testing::error(200, 0, "Failure to query node x"));
  http.on("POST", kBase + "/new/node/", testing::done());
  EXPECT_EQ(*run(create_node("c", kWish, kMark)).value, (core::Json{{"created", true}}));
  ASSERT_EQ(posted().size(), 1U);
  EXPECT_EQ(posted()[0], (core::Json{{"node_conf", node_line(kWish, kMark)}}));
}

TEST_F(TargetTest, ANodeOfTheNameIsNotCreatedAgain) {
  http.on("GET", kBase + "/node/x", testing::nodes(own_row(R"("IDLE")", "")));
  EXPECT_EQ(*run(create_node("c", kWish, kMark)).value, (core::Json{{"created", false}}));
  for (const char* mark : {"slurm-bridge/uid/other", "slurm-bridge/another/1", "gold"}) {
    http.on("GET", kBase + "/node/x", testing::nodes(own_row(R"("IDLE")", "", mark)));
    EXPECT_EQ(failure(create_node("c", kWish, kMark)), ErrorCode::kAlreadyExists) << mark;
  }
  http.on("GET", kBase + "/node/x", testing::error(500, 1800, "away"));
  EXPECT_EQ(failure(create_node("c", kWish, kMark)), ErrorCode::kUnavailable);
  EXPECT_EQ(writes(), 0);
}

TEST_F(TargetTest, FeaturesOfANodeOfOursChangeOnlyIfItStillIsOurs) {
  http.on("GET", kBase + "/node/x", testing::nodes(own_row(R"("IDLE")", "")));
  const OwnFeatures own{"", {"gpu"}, {}, {"batch", "gpu"}};
  EXPECT_EQ(*run(update_features("c", "x", kMark, own)).value, (core::Json{{"updated", true}}));
  ASSERT_EQ(posted().size(), 1U);
  EXPECT_EQ(posted()[0]["features"], (core::Json{kMark.feature(), "gpu"}));
  http.on("GET", kBase + "/node/x", testing::nodes(own_row(R"("IDLE")", "", "gold")));
  EXPECT_EQ(failure(update_features("c", "x", kMark, own)), ErrorCode::kConflict);
  EXPECT_EQ(writes(), 1);
}

struct RemoveNodeTest : TargetTest {
  plan::ActPtr remove() {
    Snapshot snapshot;
    snapshot.health = Snapshot::Health::kComplete;
    snapshot.requested_at = loop.clock().mono();
    Node node = seen("x", "slurm-bridge: gone");
    node.state.base = "IDLE";
    node.state.flags = {"DRAIN", "EXTERNAL"};
    node.features = {kMark.feature()};
    snapshot.nodes.emplace("x", std::make_shared<const Node>(node));
    auto evidence =
        OwnDrained::of(plan::testing::Observer::at(loop.clock().mono()), snapshot, {"c", "x"}, Owner::kBridge, "uid");
    return remove_node(evidence.value());
  }
};

TEST_F(RemoveNodeTest, DeletesOnlyWhatIsStillOursAndDrainedByUsAlone) {
  http.on("GET", kBase + "/node/x", testing::nodes(own_row(R"("IDLE","DRAIN")", "slurm-bridge: gone", "gold")));
  EXPECT_EQ(failure(remove()), ErrorCode::kConflict);
  for (const char* reason : {"maintenance", "slurm-operator: x; slurm-bridge: gone", ""}) {
    http.on("GET", kBase + "/node/x", testing::nodes(own_row(R"("IDLE","DRAIN")", reason)));
    EXPECT_EQ(failure(remove()), ErrorCode::kConflict) << reason;
  }
  for (const char* states : {R"("IDLE")", R"("DOWN","DRAIN")", R"("IDLE","DRAIN","FAIL")"}) {
    http.on("GET", kBase + "/node/x", testing::nodes(own_row(states, "slurm-bridge: gone")));
    EXPECT_EQ(failure(remove()), ErrorCode::kConflict) << states;
  }
  EXPECT_EQ(writes(), 0);
  http.on("GET", kBase + "/node/x", testing::nodes(own_row(R"("IDLE","DRAIN")", "slurm-bridge: gone")));
  EXPECT_EQ(*run(remove()).value, (core::Json{{"deleted", true}}));
  EXPECT_EQ(http.asked("DELETE", kBase + "/node/x"), 1);
}

TEST_F(RemoveNodeTest, ANodeThatIsGoneCountsAsDeleted) {
  http.on("GET", kBase + "/node/x", testing::error(200, 0, "Failure to query node x"));
  EXPECT_EQ(*run(remove()).value, (core::Json{{"deleted", false}}));
  EXPECT_EQ(writes(), 0);
}

TEST_F(RemoveNodeTest, AnOldAnswerDeletesNothing) {
  http.on("GET", kBase + "/node/x", testing::nodes(own_row(R"("IDLE","DRAIN")", "slurm-bridge: gone")));
  const plan::ActPtr act = remove();
  loop.advance(10min);
  EXPECT_EQ(failure(act), ErrorCode::kExpired);
  EXPECT_EQ(writes(), 0);
}

TEST_F(TargetTest, ReconfigureTellsAConfigurationFromASlurmctldThatIsAway) {
  EXPECT_TRUE(run(reconfigure("c")).value);
  http.on("GET", kBase + "/reconfigure/", {500, {}, "<html>"});
  EXPECT_EQ(failure(reconfigure("c")), ErrorCode::kUnknownOutcome) << "not slurmctld's word";
  http.on("GET", kBase + "/reconfigure/", testing::error(500, -1, "slurm_reconfigure() failed"));
  const auto result = run(reconfigure("c"));
  ASSERT_FALSE(result.value);
  EXPECT_EQ(result.value.error().code, ErrorCode::kInvalid);
  EXPECT_NE(result.value.error().message.find("slurm_reconfigure() failed"), std::string::npos);
  for (const int number : {1800, 2016, 2027}) {
    http.on("GET", kBase + "/reconfigure/", testing::error(500, number, "slurm_reconfigure() failed"));
    EXPECT_EQ(failure(reconfigure("c")), ErrorCode::kUnavailable) << number;
  }
}

TEST_F(TargetTest, AfterAReconfigureAllIsAskedFor) {
  const auto whole = [this] {
    return std::ranges::count_if(http.log, [](const auto& request) { return request.target == kBase + "/partitions/"; });
  };
  loop.advance(1100ms);
  EXPECT_EQ(whole(), 0) << "that nothing has changed is taken";
  EXPECT_TRUE(run(reconfigure("c")).value);
  loop.advance(1100ms);
  EXPECT_EQ(whole(), 1) << "partitions came and went";
  http.on("GET", kBase + "/reconfigure/", {500, {}, "<html>"});
  EXPECT_EQ(failure(reconfigure("c")), ErrorCode::kUnknownOutcome);
  loop.advance(1100ms);
  EXPECT_EQ(whole(), 2) << "they may have";
}

TEST_F(TargetTest, ALostReplyClosesAGateUntilItsOutcomeCanBeSeen) {
  live("n1", R"("IDLE")");
  http.on("POST", kBase + "/node/n1",
          [](const net::HttpRequest&) -> FakeTransport::Answer { return core::fail(ErrorCode::kUnknownOutcome, "cut"); });
  const auto result = run(drain_nodes("c", Owner::kOperator, {"n1"}, "x"));
  ASSERT_FALSE(result.value);
  EXPECT_EQ(result.value.error().code, ErrorCode::kUnknownOutcome);
  ASSERT_EQ(result.gates.size(), 1U);
  loop.advance(12s);
  EXPECT_TRUE(result.gates[0]->open());
}

TEST_F(TargetTest, NothingIsWrittenWithoutTimeForIt) {
  live("n1", R"("IDLE","DRAIN")", "slurm-operator: x");
  live("n2", R"("IDLE")");
  NodeUpdate update;
  update.comment = "b";
  const auto none = std::optional<core::MonoTime>();
  for (const auto& late : {none, std::optional(loop.clock().mono() + 150ms)}) {
    until = late;
    for (const auto& act :
         {drain_nodes("c", Owner::kOperator, {"n2"}, "x"), resume_node("c", Owner::kOperator, "n1"),
          update_node("c", "n1", update), delete_node("c", Owner::kOperator, seen("n1"), "x"), reconfigure("c")}) {
      EXPECT_EQ(failure(act), ErrorCode::kCancelled) << act->describe();
    }
  }
  EXPECT_EQ(writes(), 0);
}

TEST_F(TargetTest, TheTimeIsAskedForAfterTheLiveRead) {
  http.on("GET", kBase + "/node/n1", [this](const net::HttpRequest&) -> FakeTransport::Answer {
    until.reset();
    return testing::nodes(testing::node("n1", R"("IDLE")"));
  });
  EXPECT_EQ(failure(drain_nodes("c", Owner::kOperator, {"n1"}, "x")), ErrorCode::kCancelled);
  EXPECT_EQ(writes(), 0);
}

TEST_F(TargetTest, EachWriteOfAnActAsksForTheTime) {
  live("n1", R"("DOWN")", "dead board");
  live("n2", R"("IDLE")");
  http.on("POST", kBase + "/node/n2", [this](const net::HttpRequest&) -> FakeTransport::Answer {
    until.reset();
    return testing::done();
  });
  const auto result = run(drain_nodes("c", Owner::kOperator, {"n1", "n2"}, "x"));
  ASSERT_FALSE(result.value);
  EXPECT_EQ(result.value.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(writes(), 1);
  EXPECT_EQ(result.gates.size(), 1U) << "n2 was written";
}

TEST_F(TargetTest, AWriteIsGivenUpBeforeItsTimeIsOver) {
  live("n1", R"("IDLE")");
  until = loop.clock().mono() + 4s;
  core::Duration timeout{0};
  http.on("POST", kBase + "/node/n1", [&](const net::HttpRequest& request) -> FakeTransport::Answer {
    timeout = request.timeout;
    return core::fail(ErrorCode::kUnknownOutcome, "no answer in time");
  });
  const auto result = run(drain_nodes("c", Owner::kOperator, {"n1"}, "x"));
  EXPECT_LE(timeout, 4s);
  EXPECT_GE(timeout, 3900ms);
  ASSERT_EQ(result.gates.size(), 1U);
  loop.advance(8s);
  EXPECT_FALSE(result.gates[0]->open()) << "slurmrestd may still be at it";
  loop.advance(4s);
  EXPECT_TRUE(result.gates[0]->open());
}

TEST_F(TargetTest, FailsAtOnceWhileSlurmIsAwayOrUnknown) {
  EXPECT_EQ(failure(reconfigure("elsewhere")), ErrorCode::kUnavailable);
  http.on("GET", kBase + "/nodes/", testing::error(500, 1800, "away"));
  http.on("GET", kBase + "/nodes/?update_time=", testing::error(500, 1800, "away"));
  http.on("GET", kBase + "/ping/", testing::ping(false));
  loop.advance(2s);
  http.log.clear();
  const auto result = run(delete_node("c", Owner::kOperator, seen("n1"), "x"));
  ASSERT_FALSE(result.value);
  EXPECT_EQ(result.value.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(result.gates.empty()) << "nothing was written";
  EXPECT_EQ(writes(), 0);
}

TEST_F(TargetTest, IsToldWhenItsClusterIsRemovedMeanwhile) {
  live("n1", R"("IDLE")");
  http.held = "node/n1";
  std::optional<plan::ActResult> out;
  target.execute(drain_nodes("c", Owner::kOperator, {"n1"}, "x"), [&](plan::ActResult result) { out = std::move(result); });
  loop.advance(10ms);
  EXPECT_FALSE(out);
  clusters.remove("c");
  loop.advance(10ms);
  ASSERT_TRUE(out);
  EXPECT_FALSE(out->value);
}

}  // namespace
}  // namespace slurm
