#include "slurm/rest/client.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/testing/manual_loop.hpp"
#include "slurm/testing/fake_transport.hpp"
#include "slurm/testing/replies.hpp"

namespace slurm {
namespace {

using core::ErrorCode;

struct CountingTokens final : TokenSource {
  Credentials current() override { return {"slurm", "token-" + std::to_string(refusals)}; }
  void refused() override { ++refusals; }
  int refusals = 0;
};

struct ClientTest : ::testing::Test {
  ClientTest() { testing::serve_quiet_cluster(http); }

  /// Starts a call, runs the loop, and returns the result of the call.
  template <class T>
  core::Result<T> run(std::function<void(Client::Done<T>)> start) {
    std::optional<core::Result<T>> out;
    start([&](core::Result<T> result) {
      EXPECT_FALSE(out) << "called twice";
      out = std::move(result);
    });
    EXPECT_FALSE(out) << "called from inside the call";
    loop.advance(core::Duration{100});
    if (!out) return core::fail(ErrorCode::kCancelled, "no answer");
    return *std::move(out);
  }
  core::Result<Table<Node>> nodes(std::optional<std::int64_t> since = {}) {
    return run<Table<Node>>([&](auto done) { client.nodes(since, std::move(done)); });
  }
  core::Result<Table<Job>> jobs(std::optional<std::int64_t> since = {}) {
    return run<Table<Job>>([&](auto done) { client.jobs(since, std::move(done)); });
  }
  core::Result<Node> node(const std::string& name) {
    return run<Node>([&](auto done) { client.node(name, std::move(done)); });
  }
  core::Result<void> reconfigure() {
    return run<void>([&](auto done) { client.reconfigure(std::move(done)); });
  }

  core::ManualLoop loop;
  core::NullLogger log;
  FakeTransport http{loop};
  CountingTokens tokens;
  Client client{loop, http, tokens, log};
};

TEST_F(ClientTest, OnlyTablesMayBeLarge) {
  client.ping([](const auto&) {});
  client.diag([](const auto&) {});
  (void)node("n1");
  (void)reconfigure();
  // A slurmrestd with endless answers must not fill our memory, not even with the answer to a ping.
  for (const char* path : {"/openapi/v3", "/ping/", "/diag/", "/node/n1", "/reconfigure/"}) {
    const auto sent = std::ranges::find_if(http.log, [&](const auto& request) { return request.target.ends_with(path); });
    ASSERT_NE(sent, http.log.end()) << path;
    EXPECT_GT(sent->max_reply_bytes, 0U) << path;
    EXPECT_LE(sent->max_reply_bytes, 64UL << 20) << path;
  }
  (void)nodes();
  EXPECT_GE(http.log.back().max_reply_bytes, 100'000UL * 5'000);
  ASSERT_TRUE(jobs());
  EXPECT_GE(http.log.back().max_reply_bytes, 100'000UL * 5'000);
}

TEST_F(ClientTest, NegotiatesOnceForManyCalls) {
  int answers = 0;
  for (int i = 0; i < 3; ++i) client.nodes({}, [&](const auto& table) { answers += table ? 1 : 0; });
  loop.advance(core::Duration{100});
  ASSERT_TRUE(nodes());
  EXPECT_EQ(answers, 3);
  EXPECT_EQ(http.asked("GET", "/openapi/v3"), 1);
  ASSERT_NE(client.capabilities(), nullptr);
  EXPECT_EQ(client.capabilities()->data_parser, "v0.0.45");
  EXPECT_EQ(client.capabilities()->release, "26.05.5");
  EXPECT_TRUE(client.capabilities()->batch_node_update);
  EXPECT_TRUE(client.capabilities()->nodes_difference);
  EXPECT_TRUE(client.capabilities()->conf);
  EXPECT_TRUE(client.capabilities()->metrics);
  EXPECT_TRUE(client.capabilities()->slurmdb);
}

TEST_F(ClientTest, ChoosesTheNewestParserInCommon) {
  http.on("GET", "/openapi/v3",
          testing::ok(R"({"info":{"version":"Slurm-24.11.5&x"},"paths":{"/slurm/v0.0.40/nodes/":{"get":{}},)"
                      R"("/slurm/v0.0.42/nodes/":{"get":{}},"/slurm/v0.0.99/nodes/":{"get":{},"post":{}}}})"));
  const auto found = run<Capabilities>([&](auto done) { client.connect(std::move(done)); });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->data_parser, "v0.0.42");
  EXPECT_FALSE(found->batch_node_update);
  EXPECT_FALSE(found->nodes_difference);
  EXPECT_FALSE(found->metrics);
  EXPECT_FALSE(found->conf);
}

TEST_F(ClientTest, RefusesAServerWithoutAnyKnownParser) {
  http.on("GET", "/openapi/v3", testing::openapi("v0.0.99"));
  const auto table = nodes();
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code, ErrorCode::kUnsupported);
}

using Qos = std::vector<std::shared_ptr<const accounting::Qos>>;

TEST_F(ClientTest, OneNegotiationServesBothScopes) {
  http.on("GET", "/slurmdb/v0.0.45/qos/",
          testing::ok(R"({"qos":[{"id":1,"name":"normal"}],"errors":[],)" + testing::meta() + "}"));
  ASSERT_TRUE(nodes());
  const auto rows = run<Qos>([&](auto done) { client.accounting().qos(std::move(done)); });
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->at(0)->name, "normal");
  EXPECT_EQ(http.asked("GET", "/openapi/v3"), 1);
}

TEST_F(ClientTest, AServerWithoutAccountingStillServesTheCluster) {
  const auto qos = [&] { return run<Qos>([&](auto done) { client.accounting().qos(std::move(done)); }); };
  http.on("GET", "/slurmdb/v0.0.45/qos/", testing::ok(R"({"qos":[],"errors":[],)" + testing::meta() + "}"));
  http.on("GET", "/openapi/v3",
          testing::ok(R"({"info":{"version":"Slurm-26.05.5"},"paths":{"/slurm/v0.0.45/nodes/":{"get":{}}}})"));
  ASSERT_TRUE(nodes());
  const auto refused = qos();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(refused.error().message.find("openapi/slurmdbd"), std::string::npos) << refused.error().message;
  EXPECT_EQ(http.asked("GET", "/slurmdb"), 0);
  EXPECT_TRUE(nodes());
  http.on("GET", "/openapi/v3", testing::openapi());
  EXPECT_TRUE(qos()) << "slurmrestd was started again with openapi/slurmdbd";
}

TEST_F(ClientTest, SendsTheCredentialsOfTheTokenSource) {
  ASSERT_TRUE(nodes());
  for (const auto& request : http.log) {
    EXPECT_EQ(request.headers.at("x-slurm-user-name"), "slurm");
    EXPECT_EQ(request.headers.at("x-slurm-user-token"), "token-0");
  }
}

TEST_F(ClientTest, RenewsARefusedTokenOnce) {
  http.on("GET", "/slurm/v0.0.45/nodes/", [](const net::HttpRequest& request) -> FakeTransport::Answer {
    if (request.headers.at("x-slurm-user-token") == "token-0") return testing::error(511, 1007, "Failure to query nodes");
    return testing::nodes("");
  });
  EXPECT_TRUE(nodes());
  EXPECT_EQ(tokens.refusals, 1);
  http.on("GET", "/slurm/v0.0.45/nodes/", testing::error(511, 1007, "Failure to query nodes"));
  const auto again = nodes();
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kUnauthorized);
  EXPECT_EQ(http.asked("GET", "/slurm/v0.0.45/nodes/"), 4) << "each tried twice, no more";
}

TEST_F(ClientTest, NegotiatesAnewAfterTheServerWasAway) {
  ASSERT_TRUE(nodes());
  http.on("GET", "/slurm/v0.0.45/nodes/",
          [](const net::HttpRequest&) -> FakeTransport::Answer { return core::fail(ErrorCode::kUnavailable, "refused"); });
  EXPECT_EQ(nodes().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(client.capabilities(), nullptr);
  testing::serve_quiet_cluster(http);
  EXPECT_TRUE(nodes());
  EXPECT_EQ(http.asked("GET", "/openapi/v3"), 2);
}

TEST_F(ClientTest, NegotiatesAnewWhenTheReleaseChanged) {
  ASSERT_TRUE(nodes());
  http.on("GET", "/slurm/v0.0.45/nodes/", testing::nodes("", 100, "26.11.0"));
  EXPECT_TRUE(nodes()) << "the answer itself is good";
  EXPECT_EQ(client.capabilities(), nullptr);
  ASSERT_TRUE(jobs());
  EXPECT_EQ(http.asked("GET", "/openapi/v3"), 2);
}

TEST_F(ClientTest, NegotiatesAnewWhenAPathHasGone) {
  ASSERT_TRUE(nodes());
  http.on("GET", "/slurm/v0.0.45/nodes/", {404, {}, "Unable to find requested URL"});
  EXPECT_EQ(nodes().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(client.capabilities(), nullptr);
}

TEST_F(ClientTest, ALostReplyToAReadIsUnavailable) {
  ASSERT_TRUE(nodes());
  http.on("GET", "/slurm/v0.0.45/nodes/",
          [](const net::HttpRequest&) -> FakeTransport::Answer { return core::fail(ErrorCode::kUnknownOutcome, "cut"); });
  http.on("GET", "/slurm/v0.0.45/reconfigure/",
          [](const net::HttpRequest&) -> FakeTransport::Answer { return core::fail(ErrorCode::kUnknownOutcome, "cut"); });
  EXPECT_EQ(nodes().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(reconfigure().error().code, ErrorCode::kUnknownOutcome);
}

TEST_F(ClientTest, ATableThatComesLateIsWaitedForLonger) {
  ASSERT_TRUE(nodes());
  const auto last = [&] { return http.log.back().timeout; };
  const core::Duration first = last();
  const auto late = [&] {
    http.latency = std::chrono::minutes{1};
    http.on("GET", "/slurm/v0.0.45/jobs/",
            [](const net::HttpRequest&) -> FakeTransport::Answer { return core::fail(ErrorCode::kUnknownOutcome, "late"); });
    client.jobs({}, [](const auto& table) { EXPECT_FALSE(table); });
    loop.advance(std::chrono::minutes{3});
    return last();
  };
  EXPECT_EQ(late(), first);
  EXPECT_EQ(late(), first * 2);
  EXPECT_EQ(late(), first * 4);
  EXPECT_EQ(late(), std::chrono::minutes{1});
  EXPECT_EQ(late(), std::chrono::minutes{1});
  http.latency = core::Duration{1};
  (void)node("n1");
  EXPECT_EQ(last(), first) << "a node alone is no table";
  ASSERT_TRUE(nodes());
  EXPECT_EQ(last(), std::chrono::minutes{1});
  ASSERT_TRUE(nodes());
  EXPECT_EQ(last(), first) << "they come soon again";
}

TEST_F(ClientTest, UnchangedIsNotEmpty) {
  const auto table = nodes(100);
  ASSERT_TRUE(table);
  EXPECT_TRUE(table->unchanged);
  EXPECT_EQ(table->last_update, 100);
  const auto same_jobs = jobs(100);
  ASSERT_TRUE(same_jobs);
  EXPECT_TRUE(same_jobs->unchanged);
  EXPECT_EQ(same_jobs->last_update, 100);
  const auto all_jobs = jobs();
  ASSERT_TRUE(all_jobs);
  EXPECT_FALSE(all_jobs->unchanged);
}

TEST_F(ClientTest, AsksNoDifferenceOfAServerThatReadsNoTimes) {
  testing::serve_quiet_cluster(http, "/slurm/v0.0.41");
  http.on("GET", "/openapi/v3", testing::openapi("v0.0.41", "24.05.1"));
  const auto refused =
      net::HttpResponse{500, {}, R"({"errors":[{"description":"Parsing of 100 for timestamp failed","error_number":9202}]})"};
  for (const char* table : {"nodes", "jobs", "partitions"}) {
    http.on("GET", std::string("/slurm/v0.0.41/") + table + "/?update_time=", refused);
  }
  const auto found = run<Capabilities>([&](auto done) { client.connect(std::move(done)); });
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_FALSE(found->jobs_difference);
  EXPECT_FALSE(found->nodes_difference);
  const auto table = nodes(100);
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_FALSE(table->unchanged);
  ASSERT_TRUE(jobs(100));
}

TEST_F(ClientTest, NoChangesSinceNeverAskedIsNonsense) {
  http.on("GET", "/slurm/v0.0.45/jobs/", testing::no_job_changes());
  EXPECT_EQ(jobs().error().code, ErrorCode::kInternal);
  http.on("GET", "/slurm/v0.0.45/nodes/", {304, {}, ""});
  EXPECT_EQ(nodes().error().code, ErrorCode::kInternal);
}

TEST_F(ClientTest, ErrorsWithHttp200AreErrors) {
  http.on("GET", "/slurm/v0.0.45/nodes/",
          testing::ok(R"({"nodes":[],"errors":[{"description":"x","error_number":2002,"error":"denied"}]})"));
  EXPECT_EQ(nodes().error().code, ErrorCode::kForbidden);
  http.on("GET", "/slurm/v0.0.45/nodes/", testing::ok(R"({"errors":[]})"));
  EXPECT_EQ(nodes().error().code, ErrorCode::kInternal) << "an absent list is not an empty one";
  http.on("GET", "/slurm/v0.0.45/nodes/", {500, {}, "<html>"});
  EXPECT_EQ(nodes().error().code, ErrorCode::kInternal);
}

TEST_F(ClientTest, FetchesWholeWhereOldServersStumbleOverADifference) {
  http.on("GET", "/slurm/v0.0.45/nodes/?update_time=", testing::error(500, -1, "Unable to query partitions"));
  const auto table = nodes(100);
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_FALSE(table->unchanged);
  EXPECT_EQ(table->rows.size(), 1U);
  EXPECT_EQ(http.log.back().target, "/slurm/v0.0.45/nodes/");
}

TEST_F(ClientTest, AnUnknownNodeIsNotFound) {
  http.on("GET", "/slurm/v0.0.45/node/zz", testing::error(200, 0, "Failure to query node zz"));
  EXPECT_EQ(node("zz").error().code, ErrorCode::kNotFound);
  http.on("GET", "/slurm/v0.0.45/node/zz", testing::nodes(""));
  EXPECT_EQ(node("zz").error().code, ErrorCode::kNotFound);
  http.on("GET", "/slurm/v0.0.45/node/zz", {200, {}, R"({"meta":{},"errors":[],"warnings":[]})"});
  EXPECT_EQ(node("zz").error().code, ErrorCode::kInternal) << "a reply that says nothing of it";
  http.on("GET", "/slurm/v0.0.45/node/zz", testing::error(502, 1800, "Failure to query node zz"));
  EXPECT_EQ(node("zz").error().code, ErrorCode::kUnavailable) << "a slurmctld that is away knows of no node";
  http.on("GET", "/slurm/v0.0.45/node/zz", {500, {}, ""});
  EXPECT_EQ(node("zz").error().code, ErrorCode::kInternal);
  http.on("GET", "/slurm/v0.0.45/node/zz", testing::nodes(testing::node("n1", R"("IDLE")")));
  EXPECT_EQ(node("zz").error().code, ErrorCode::kInternal) << "another node";
  http.on("GET", "/slurm/v0.0.45/node/h1", testing::nodes(R"({"name":"n1","hostname":"h1","state":["IDLE"]})"));
  EXPECT_EQ(node("h1").error().code, ErrorCode::kConflict);
  EXPECT_NE(node("h1").error().message.find("the slurmd of host h1 has registered as n1"), std::string::npos)
      << "slurmctld takes the name for a host's, whose slurmd was given another one";
}

TEST_F(ClientTest, AnUnknownJobIsNotFound) {
  const auto job = [this] { return run<std::shared_ptr<const Job>>([&](auto done) { client.job(7, std::move(done)); }); };
  constexpr const char* kPath = "/slurm/v0.0.45/job/7";
  http.on("GET", kPath, testing::jobs(R"({"job_id":7,"job_state":["RUNNING"]})"));
  ASSERT_TRUE(job()) << job().error().message;
  EXPECT_EQ((*job())->state, "RUNNING");
  for (const int status : {200, 404, 500}) {
    http.on("GET", kPath, testing::error(status, 2017, "Unable to query JobId=7"));
    EXPECT_EQ(job().error().code, ErrorCode::kNotFound) << status;
  }
  http.on("GET", kPath, {404, {}, "Unable to find requested URL"});
  EXPECT_NE(job().error().code, ErrorCode::kNotFound) << "the server has no such request";
  http.on("GET", kPath, testing::error(404, 0, "?"));
  EXPECT_NE(job().error().code, ErrorCode::kNotFound) << "no word of the job";
  http.on("GET", kPath, testing::jobs(""));
  EXPECT_EQ(job().error().code, ErrorCode::kInternal) << "an empty list is no proof of an end";
  http.on("GET", kPath, testing::jobs(R"({"job_id":8,"job_state":["RUNNING"]})"));
  EXPECT_EQ(job().error().code, ErrorCode::kInternal) << "another job";
  http.on("GET", kPath, testing::error(500, 1800, "Unable to query JobId=7"));
  EXPECT_EQ(job().error().code, ErrorCode::kUnavailable) << "a slurmctld that is away knows of no job";
}

TEST_F(ClientTest, WritesOnlyWhatIsSet) {
  http.on("POST", "/slurm/v0.0.45/node/n1", testing::done());
  NodeUpdate update;
  update.state = "DRAIN";
  update.reason = "slurm-operator: \"x\"";
  EXPECT_TRUE(run<void>([&](auto done) { client.update_node("n1", update, std::move(done)); }));
  EXPECT_EQ(*core::parse_json(http.log.back().body), (core::Json{{"state", {"DRAIN"}}, {"reason", "slurm-operator: \"x\""}}));
  EXPECT_EQ(http.log.back().headers.at("content-type"), "application/json");
}

TEST_F(ClientTest, TakesAwayActiveFeaturesWithTheFeatures) {
  http.on("POST", "/slurm/v0.0.45/node/n1", testing::done());
  NodeUpdate update;
  update.features = {"cpu"};
  EXPECT_TRUE(run<void>([&](auto done) { client.update_node("n1", update, std::move(done)); }));
  EXPECT_EQ(*core::parse_json(http.log.back().body), (core::Json{{"features", {"cpu"}}, {"features_act", {"cpu"}}}));
}

TEST_F(ClientTest, NoFeaturesAreAListWithAnEmptyName) {
  http.on("POST", "/slurm/v0.0.45/node/n1", testing::done());
  NodeUpdate update;
  update.features = std::vector<std::string>{};
  EXPECT_TRUE(run<void>([&](auto done) { client.update_node("n1", update, std::move(done)); }));
  EXPECT_EQ(*core::parse_json(http.log.back().body), (core::Json{{"features", {""}}, {"features_act", {""}}}));
}

TEST_F(ClientTest, CancelsAndRequeuesTasksByTheirNumbers) {
  http.on("DELETE", "/slurm/v0.0.45/job/", testing::done());
  http.on("POST", "/slurm/v0.0.45/jobs/requeue", testing::done());
  EXPECT_TRUE(run<void>([&](auto done) { client.cancel_job("12_3", std::move(done)); }));
  EXPECT_EQ(http.log.back().target, "/slurm/v0.0.45/job/12_3");
  EXPECT_TRUE(run<void>([&](auto done) { client.requeue_job("12_3", std::move(done)); }));
  // Without the flag Incomplete, a job that has just ended would run once more.
  EXPECT_EQ(*core::parse_json(http.log.back().body), (core::Json{{"jobs", {"12_3"}}, {"flags", {"Incomplete"}}}));
}

TEST_F(ClientTest, AServerThatCannotRequeueIsNotAsked) {
  http.on("GET", "/openapi/v3",
          testing::ok(R"({"info":{"version":"Slurm-24.11.5"},"paths":{"/slurm/v0.0.42/nodes/":{"get":{}}}})"));
  const auto result = run<void>([&](auto done) { client.requeue_job("12", std::move(done)); });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(http.asked("POST", "/"), 0);
}

TEST_F(ClientTest, EncodesNamesInPaths) {
  EXPECT_FALSE(node("a/../b c"));
  EXPECT_EQ(http.log.back().target, "/slurm/v0.0.45/node/a%2F..%2Fb%20c");
}

TEST_F(ClientTest, BatchesWhereTheServerCan) {
  http.on("POST", "/slurm/v0.0.45/nodes/", testing::done());
  NodeUpdate update;
  update.state = "DRAIN";
  EXPECT_TRUE(run<void>([&](auto done) { client.update_nodes({"n1", "n2"}, update, std::move(done)); }));
  EXPECT_EQ((*core::parse_json(http.log.back().body))["name"], (core::Json{"n2", "n1"}));
}

TEST_F(ClientTest, WritesOneByOneWhereTheServerCannot) {
  http.on("GET", "/openapi/v3",
          testing::ok(R"({"info":{"version":"Slurm-24.05.1"},"paths":{"/slurm/v0.0.41/nodes/":{"get":{}}}})"));
  http.on("POST", "/slurm/v0.0.41/node/", testing::done());
  http.on("POST", "/slurm/v0.0.41/node/n2", testing::error(500, 2018, "Failure to update node n2"));
  NodeUpdate update;
  update.state = "DRAIN";
  const auto result = run<void>([&](auto done) { client.update_nodes({"n1", "n2", "n3"}, update, std::move(done)); });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(http.asked("POST", "/slurm/v0.0.41/node/"), 3) << "one failure does not keep the others";
}

TEST_F(ClientTest, AReplyThatDoesNotReadLeavesAWriteOpen) {
  http.on("DELETE", "/slurm/v0.0.45/node/n1", testing::ok("{\"errors\":["));
  const auto remove = [&] { return run<void>([&](auto done) { client.delete_node("n1", std::move(done)); }); };
  EXPECT_EQ(remove().error().code, ErrorCode::kUnknownOutcome);
  http.on("DELETE", "/slurm/v0.0.45/node/n1", testing::ok("hello"));
  EXPECT_EQ(remove().error().code, ErrorCode::kUnknownOutcome);
  http.on("DELETE", "/slurm/v0.0.45/node/n1", testing::error(500, 2016, "Failure to delete"));
  EXPECT_EQ(remove().error().code, ErrorCode::kBusy);
  http.on("DELETE", "/slurm/v0.0.45/node/n1", testing::done());
  EXPECT_TRUE(remove());
}

TEST_F(ClientTest, LongTablesAreReadBesideTheLoop) {
  std::string rows;
  for (int i = 0; i < 3000; ++i)
    rows += (i == 0 ? "" : ",") + testing::node("node-" + std::to_string(i), R"("IDLE","DYNAMIC_NORM")");
  http.on("GET", "/slurm/v0.0.45/nodes/", testing::nodes(rows));
  const auto table = nodes();
  ASSERT_TRUE(table);
  EXPECT_EQ(table->rows.size(), 3000U);
}

TEST_F(ClientTest, WhoWaitsIsToldWhenTheClientGoes) {
  std::vector<ErrorCode> codes;
  {
    Client brief(loop, http, tokens, log);
    http.held = "/slurm/";
    brief.nodes({}, [&](const auto& result) { codes.push_back(result.error().code); });
    brief.reconfigure([&](const auto& result) { codes.push_back(result.error().code); });
    loop.advance(core::Duration{50});
    EXPECT_TRUE(codes.empty());
  }
  EXPECT_EQ(codes, (std::vector{ErrorCode::kCancelled, ErrorCode::kUnknownOutcome}));
  http.release();
}

}  // namespace
}  // namespace slurm
