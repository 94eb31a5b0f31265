#include "enlist/coordinator/server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base64.hpp"
#include "core/hash.hpp"
#include "core/testing/manual_loop.hpp"
#include "enlist/coordinator/pools_plan.hpp"
#include "enlist/coordinator/testing/fakes.hpp"
#include "enlist/rules/key_file.hpp"
#include "enlist/wire/token.hpp"
#include "slurm/testing/fake_transport.hpp"
#include "slurm/testing/replies.hpp"

namespace enlist {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

const std::string kSecret = "00112233445566778899aabbccddeeff";
const std::string kAdmin(64, 'a'), kOwn(64, 'c'), kHost(64, '1'), kOtherHost(64, '2');
const std::string kBase = "/slurm/v0.0.45";
const std::string kAuthKey = "the content of slurm.key";

/// Returns other bytes at each call.
struct CountingRandom final : core::Random {
  std::uint64_t below(std::uint64_t) override { return 0; }
  std::string bytes(std::size_t n) override { return std::string(n, static_cast<char>(++calls)); }
  [[nodiscard]] std::unique_ptr<core::Random> stream(std::string_view) const override {
    return std::make_unique<CountingRandom>();
  }
  int calls = 0;
};

struct ServerTest : ::testing::Test {
  ServerTest() {
    slurm::testing::serve_quiet_cluster(http);
    host.files["/etc/slurm/slurm.conf"] = "ClusterName=site\nSlurmctldHost=ctl\nMaxNodeCount=10\nNodeSet=gpu-2 Feature=x\n";
    host.files["/etc/slurm/slurm.key"] = kAuthKey;
    store.set().pools["gpu"] = {.name = "gpu"};
    store.set().tokens[digest_of(kSecret)] = {"gpu", loop.clock().wall() + 1h, 1};
    store.listen([this](const Changes& changes) { server.changed(changes); });
    clusters.set("slurm", {"localhost", 6832}, "key");
    files.start();
    loop.advance(500ms);
  }
  ~ServerTest() override {
    for (const std::string& secret : {kSecret, kAuthKey, core::base64_encode(kAuthKey)})
      EXPECT_THAT(log.text, Not(HasSubstr(secret)));
  }

  using Answer = std::shared_ptr<std::optional<net::HttpResponse>>;
  Server::Reply into(const Answer& answer) {
    return [answer](net::HttpResponse response) {
      EXPECT_FALSE(*answer) << "answered twice";
      *answer = std::move(response);
    };
  }
  static net::HttpRequest request(const std::string& method, const std::string& path, const core::Json& body,
                                  const std::string& key) {
    net::HttpRequest out{.method = method, .target = path, .body = body.is_null() ? "" : core::canonical(body)};
    out.peer_key = key;
    return out;
  }
  static core::Json join_body(const std::string& secret = kSecret) {
    return to_json(JoinRequest{secret, "host-a", "26.05.1", "CPUs=4 RealMemory=1000"});
  }
  Answer join(const core::Json& body, const std::string& key = kHost) {
    auto answer = std::make_shared<std::optional<net::HttpResponse>>();
    server.join(request("POST", "/v1/join", body, key), into(answer));
    return answer;
  }
  Answer ask(const std::string& method, const std::string& path, const core::Json& body = nullptr,
             const std::string& key = kAdmin) {
    auto answer = std::make_shared<std::optional<net::HttpResponse>>();
    server.serve(request(method, path, body, key), into(answer));
    return answer;
  }
  Answer sync(const Report& report, const std::string& revision = "", int wait_ms = 0, const std::string& key = kHost) {
    return ask("POST", "/v1/sync", to_json(Sync{report, revision, wait_ms}), key);
  }
  /// Returns "status text" of an answer: the error, or the whole body.
  std::string told(const Answer& answer) {
    for (int i = 0; i < 10 && !*answer; ++i) loop.advance(100ms);
    if (!*answer) return "no answer";
    const core::Json body = core::parse_json((*answer)->body).value_or(core::Json());
    const std::string error = core::get_string(body, {"error"});
    return std::to_string((*answer)->status) + " " + (error.empty() ? (*answer)->body : error);
  }
  core::Json body(const Answer& answer) {
    told(answer);
    return *answer ? core::parse_json((*answer)->body).value_or(core::Json()) : core::Json();
  }
  Node& joined(const std::string& name = "gpu-1", const std::string& key = kHost) {
    return store.set().nodes[name] = Node{.name = name, .pool = "gpu", .key = key};
  }
  void commit(const Changes& changes) {
    store.commit([changes](const Contents&) -> core::Result<Changes> { return changes; }, [](const core::Result<void>&) {});
    loop.advance(0s);
  }
  void slurm_is_away() {
    clusters.remove("slurm");
    loop.advance(0s);
  }

  core::ManualLoop loop;
  CountingRandom random;
  testing::KeptLog log;
  testing::FakeHost host;
  testing::MemoryStore store{loop};
  slurm::FakeTransport http{loop};
  slurm::Clusters clusters{loop, random, log, [this](const slurm::Endpoint&) { return std::make_unique<slurm::Link>(http); }};
  SlurmFiles files{loop, log, host, "/etc/slurm/slurm.conf", [this] { server.changed(); }};
  std::vector<std::string> heard;
  Server server{loop,
                random,
                log,
                store,
                clusters,
                files,
                {.admin = kAdmin, .own = kOwn, .host = "ctl", .join_port = 6831, .agent_port = 6830, .cluster = "slurm"},
                {.reports = [this](const Node&, const Report&) { return one_host; },
                 .heard = [this](const std::string& node) { heard.push_back(node); },
                 .rotation = [this] { return rotation; }}};
  bool one_host = true;
  core::Json rotation{{"phase", ""}};
};

// --- Joining ------------------------------------------------------------------------------------------------------

TEST_F(ServerTest, AHostJoinsOnceWithAToken) {
  const core::Json reply = body(join(join_body()));
  EXPECT_EQ(reply, to_json(JoinReply{"gpu-1", "gpu", "site", 6830}));
  const Node& node = store.contents().nodes.at("gpu-1");
  EXPECT_EQ(node.key, kHost);
  EXPECT_EQ(node.report.hostname, "host-a");
  EXPECT_EQ(store.contents().pools.at("gpu").next_number, 2);
  EXPECT_EQ(store.contents().tokens.at(digest_of(kSecret)).uses_left, 0);
  EXPECT_EQ(store.commits, 1) << "one transaction";
  EXPECT_THAT(told(join(join_body(), kOtherHost)), HasSubstr("401 the token is not known, has expired or is used up"));
}

TEST_F(ServerTest, AHostWhoseAnswerWasLostAsksAgain) {
  body(join(join_body()));
  EXPECT_EQ(core::get_string(body(join(join_body())), {"node"}), "gpu-1") << "although the token is used up";
  EXPECT_EQ(store.commits, 1) << "nothing changes";
  store.set().nodes.at("gpu-1").revoked = true;
  EXPECT_THAT(told(join(join_body())), HasSubstr("401")) << "it takes no revocation back";
  store.set().nodes.at("gpu-1").revoked = false;
  loop.advance(1h);
  EXPECT_THAT(told(join(join_body())), HasSubstr("401")) << "it has expired";
}

TEST_F(ServerTest, TwoHostsWithOneUseOfATokenBecomeOneNode) {
  const Answer first = join(join_body()), second = join(join_body(), kOtherHost);
  EXPECT_THAT(told(first), HasSubstr("200"));
  EXPECT_THAT(told(second), HasSubstr("401"));
  EXPECT_EQ(store.contents().nodes.size(), 1U);
}

TEST_F(ServerTest, NamesThatAreTakenAreSkipped) {
  // gpu-2 is a NodeSet, gpu-3 a node of Slurm, gpu-4 a partition, gpu-5 a node that has joined.
  http.on("GET", kBase + "/nodes/", slurm::testing::nodes(slurm::testing::node("gpu-3", R"("IDLE")"), 200));
  http.on("GET", kBase + "/partitions/", slurm::testing::partitions(R"({"name":"gpu-4","partition":{"state":["UP"]}})", 200));
  clusters.poll_all_next("slurm");
  loop.advance(5s);
  store.set().pools["gpu"].next_number = 2;
  joined("gpu-5", kOtherHost);
  EXPECT_EQ(core::get_string(body(join(join_body())), {"node"}), "gpu-6");
  EXPECT_EQ(store.contents().pools.at("gpu").next_number, 7);
}

TEST_F(ServerTest, AWrongTokenIsAnsweredAfterAConstantTime) {
  const Answer unknown = join(join_body(std::string(32, '0')));
  store.set().tokens[digest_of("expired")] = {"gpu", loop.clock().wall(), 1};
  const Answer expired = join(join_body("expired"));
  loop.advance(299ms);
  EXPECT_FALSE(*unknown || *expired);
  loop.advance(1ms);
  ASSERT_TRUE(*unknown && *expired);
  EXPECT_EQ(told(unknown), told(expired));
  EXPECT_EQ((*unknown)->status, 401);
}

TEST_F(ServerTest, ManyWrongTokensAreNotLookedAt) {
  std::vector<Answer> answers;
  for (int i = 0; i < 12; ++i) answers.push_back(join(join_body("wrong")));
  EXPECT_THAT(told(answers.at(9)), HasSubstr("401"));
  EXPECT_THAT(told(answers.at(10)), HasSubstr("429 too many wrong tokens"));
  EXPECT_THAT(told(join(join_body())), HasSubstr("200")) << "a right token is";
  loop.advance(1s);
  EXPECT_THAT(told(join(join_body("wrong"))), HasSubstr("401"));
}

TEST_F(ServerTest, AHostOfAnotherPoolIsToldItsNode) {
  joined("cpu-7").pool = "cpu";
  EXPECT_THAT(told(join(join_body())), HasSubstr("409 this host has joined already: it is node cpu-7 of pool cpu"));
  EXPECT_FALSE(store.contents().tokens.empty()) << "the token is not used up";
}

TEST_F(ServerTest, ATokenFromBeforeLetsNoRevokedHostIn) {
  store.set().tokens[digest_of(kSecret)].uses_left = 5;
  store.set().tokens["other"] = {"cpu", loop.clock().wall() + 1h, 1};
  joined("gpu-7");
  EXPECT_THAT(told(ask("POST", "/v1/nodes/revoke", {{"nodes", {"gpu-7"}}})), HasSubstr("200"));
  EXPECT_THAT(told(join(join_body())), HasSubstr("401")) << "with the key that is revoked";
  EXPECT_THAT(told(join(join_body(), kOtherHost)), HasSubstr("401")) << "with a key that it has just made";
  EXPECT_TRUE(store.contents().nodes.at("gpu-7").revoked);
  EXPECT_EQ(store.contents().nodes.size(), 1U);
  EXPECT_THAT(store.contents().tokens, ElementsAre(Pair("other", ::testing::_))) << "other pools go on";
  const int commits = store.commits;
  told(ask("POST", "/v1/nodes/revoke", {{"nodes", {"gpu-7"}}}));
  EXPECT_EQ(store.commits, commits) << "a second time is the same";
}

TEST_F(ServerTest, AHostThatJoinsAgainGetsItsNodeAgain) {
  joined("gpu-7");
  EXPECT_THAT(told(ask("POST", "/v1/nodes/revoke", {{"nodes", {"gpu-7"}}})), HasSubstr("200"));
  store.set().tokens[digest_of(kSecret)] = {"gpu", loop.clock().wall() + 1h, 1};
  EXPECT_EQ(core::get_string(body(join(join_body())), {"node"}), "gpu-7");
  EXPECT_FALSE(store.contents().nodes.at("gpu-7").revoked);
  EXPECT_EQ(store.contents().nodes.size(), 1U);
  EXPECT_EQ(store.contents().tokens.at(digest_of(kSecret)).uses_left, 0);
}

TEST_F(ServerTest, WhatCannotWorkIsRefusedAndLeavesNothingBehind) {
  const auto with = [](const std::string& version, const std::string& conf) {
    return to_json(JoinRequest{kSecret, "host-a", version, conf});
  };
  EXPECT_THAT(told(join(with("26.11.0", "CPUs=1 RealMemory=1"))), HasSubstr("422 slurmd is 26.11.0 and slurmctld is 26.05.5"));
  EXPECT_THAT(told(join(with("23.11.0", "CPUs=1 RealMemory=1"))), HasSubstr("422 slurmd is 23.11.0 and slurmctld is 26.05.5"));
  EXPECT_THAT(told(join(with("new", "CPUs=1 RealMemory=1"))), HasSubstr("422 slurmd's release \"new\" cannot be read"));
  EXPECT_THAT(told(join(with("26.05.1", "CPUs=1 Sockets=x"))), HasSubstr("422 slurmd's --conf would be invalid"));
  EXPECT_THAT(told(join(with("26.05.1\n", "CPUs=1"))), HasSubstr("422 slurmd's release: it has control characters"));
  EXPECT_THAT(told(join(with("26.05.1\u009b", "CPUs=1"))), HasSubstr("422 slurmd's release: it has control characters"));
  store.set().pools.at("gpu").node_conf = "Topology=default:sw1";
  EXPECT_THAT(told(join(with("24.11.5", "CPUs=1 RealMemory=1"))),
              HasSubstr("422 slurmd's --conf would be invalid: Topology: Slurm has this parameter since 25.05, but the release "
                        "here is 24.11.5"));
  EXPECT_THAT(told(join(join_body(), "")), HasSubstr("401 the host presented no key"));
  EXPECT_THAT(told(join({{"hostname", "h"}})), HasSubstr("422 secret"));
  EXPECT_THAT(told(join("text")), HasSubstr("422"));
  store.set().pools.clear();
  EXPECT_THAT(told(join(join_body())), HasSubstr("422 pool gpu does not exist any more"));
  EXPECT_EQ(store.commits, 0);
  EXPECT_THAT(log.text, HasSubstr("a host is refused"));
}

TEST_F(ServerTest, AHostWithAnotherKeyIsRefused) {
  const auto with = [](const std::string& plain_key, const std::string& jwks) {
    return to_json(JoinRequest{kSecret, "host-a", "26.05.1", "CPUs=4 RealMemory=1000", plain_key, jwks});
  };
  const std::string ours = key_revision("slurm.key", kAuthKey);
  EXPECT_THAT(told(join(with("0123456789abcdef", ""))), HasSubstr("409 the host has a slurm.key with another key"));
  EXPECT_THAT(told(join(with(ours, "0123456789abcdef"))), HasSubstr("409 the host has a slurm.jwks with another key"));
  EXPECT_EQ(store.commits, 0);
  EXPECT_THAT(log.text, HasSubstr("another key than the cluster's"));
  EXPECT_THAT(told(join(with(ours, ""))), HasSubstr("200 "));
  // slurmd prefers the slurm.jwks.
  host.files["/etc/slurm/slurm.jwks"] =
      R"({"keys": [{"alg": "HS256", "kty": "oct", "kid": "a", "k": "MDEyMzQ1Njc4OWFiY2RlZg=="}]})";
  loop.advance(10s);
  EXPECT_THAT(told(join(with("0123456789abcdef", ""))), HasSubstr("200 "));
}

TEST_F(ServerTest, AFullNodeTableIsNamed) {
  host.files["/etc/slurm/slurm.conf"] = "ClusterName=site\nSlurmctldHost=ctl\nMaxNodeCount=2\n";
  joined("gpu-1", kOtherHost);
  loop.advance(10s);
  EXPECT_THAT(told(join(join_body())), HasSubstr("422 Slurm's node table is full: MaxNodeCount is 2, and there are 2 nodes"));
  store.set().nodes["gpu-1"].phase = Phase::kSilent;
  EXPECT_THAT(told(join(join_body())), HasSubstr("200 ")) << "the host is gone, and Slurm does not have it";
}

TEST_F(ServerTest, NobodyJoinsWhileSlurmIsAway) {
  slurm_is_away();
  EXPECT_THAT(told(join(join_body())), HasSubstr("503 Slurm does not answer the coordinator"));
  EXPECT_FALSE(store.contents().tokens.empty());
}

TEST_F(ServerTest, NobodyJoinsWithoutTheAuthKey) {
  host.files.erase("/etc/slurm/slurm.key");
  loop.advance(10s);
  EXPECT_EQ(told(join(join_body())), "503 there is neither slurm.jwks nor slurm.key in /etc/slurm");
  EXPECT_THAT(store.contents().nodes, IsEmpty());
  EXPECT_EQ(store.contents().tokens.at(digest_of(kSecret)).uses_left, 1);
  host.files["/etc/slurm/slurm.key"] = kAuthKey;
  loop.advance(10s);
  EXPECT_THAT(told(join(join_body())), HasSubstr("200"));
}

TEST_F(ServerTest, AFullDiskIsNoNode) {
  store.full = true;
  EXPECT_EQ(told(join(join_body())), "503 the disk is full");
  EXPECT_THAT(store.contents().nodes, IsEmpty());
}

TEST_F(ServerTest, OtherPathsOfTheJoiningListenerHaveNothing) {
  for (const auto& [method, path, status] :
       {std::tuple("GET", "/v1/join", 405), {"POST", "/v1/sync", 404}, {"GET", "/v1/key", 404}}) {
    auto answer = std::make_shared<std::optional<net::HttpResponse>>();
    server.join(request(method, path, {}, kAdmin), into(answer));
    EXPECT_THAT(told(answer), HasSubstr(std::to_string(status))) << path;
  }
}

// --- Agents -------------------------------------------------------------------------------------------------------

const Report kReport{.hostname = "host-a", .boot_id = "b", .slurm_version = "26.05.1"};

TEST_F(ServerTest, AnAgentIsToldWhatToBringAbout) {
  joined().node_conf = "Weight=3";
  const auto reply = from_json<SyncReply>(body(sync(kReport)));
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->desired.node, "gpu-1");
  EXPECT_EQ(reply->desired.pool, "gpu");
  EXPECT_EQ(reply->desired.cluster, "site");
  EXPECT_THAT(reply->desired.controllers, ElementsAre("ctl:6817"));
  EXPECT_EQ(reply->desired.node_conf, "Weight=3");
  EXPECT_EQ(reply->desired.key_revision, *files.key_revision());
  EXPECT_EQ(reply->phase, "Pending");
  EXPECT_EQ(core::get_string(body(sync(kReport)), {"revision"}), reply->revision);
  EXPECT_THAT(heard, ElementsAre("gpu-1", "gpu-1"));
}

TEST_F(ServerTest, OnlyAChangedReportIsWritten) {
  joined();
  sync(kReport);
  loop.advance(0s);
  EXPECT_EQ(store.contents().nodes.at("gpu-1").report, kReport);
  sync(kReport);
  loop.advance(0s);
  EXPECT_EQ(store.commits, 1);
  EXPECT_EQ(heard.size(), 2U);
}

TEST_F(ServerTest, AReportOfAnotherHostIsNotWritten) {
  joined();
  one_host = false;
  EXPECT_THAT(told(sync(kReport)), HasSubstr("200"));
  EXPECT_EQ(store.commits, 0);
  EXPECT_EQ(heard.size(), 1U);
}

TEST_F(ServerTest, AnAgentWaitsForWhatIsNew) {
  joined();
  const std::string revision = core::get_string(body(sync(kReport)), {"revision"});
  const Answer waits = sync(kReport, revision, 30000);
  loop.advance(20s);
  EXPECT_FALSE(*waits);
  store.commit(
      [](const Contents& now) {
        Node node = now.nodes.at("gpu-1");
        node.phase = Phase::kReady;
        return Changes{.nodes = {{"gpu-1", node}}};
      },
      [](const core::Result<void>&) {});
  loop.advance(0s);
  ASSERT_TRUE(*waits) << "the phase is new";
  EXPECT_EQ(core::get_string(body(waits), {"phase"}), "Ready");

  const std::string next = core::get_string(body(waits), {"revision"});
  const Answer again = sync(kReport, next, 30000);
  host.files["/etc/slurm/slurm.key"] = "rotated";
  loop.advance(10s);
  ASSERT_TRUE(*again) << "the key is new";
  EXPECT_NE(core::get_string(body(again), {"revision"}), next);
}

TEST_F(ServerTest, WhatConcernsOthersIsNoWorkForAnAgentThatWaits) {
  joined();
  const std::string revision = core::get_string(body(sync(kReport)), {"revision"});
  const Answer waits = sync(kReport, revision, 30000);
  loop.advance(0s);
  // This change is not reported to the server. If the server computed the reply of this agent, it would find the change.
  store.set().nodes["gpu-1"].message = "news";
  commit({.nodes = {{"gpu-3", Node{.name = "gpu-3", .pool = "gpu", .key = kOtherHost}}}});
  commit({.pools = {{"gpu", Pool{.name = "gpu", .next_number = 4}}, {"cpu", Pool{.name = "cpu"}}}});
  commit({.tokens = {{"t", Token{.pool = "gpu"}}}, .values = {{"v", core::Json()}}});
  EXPECT_FALSE(*waits);
  commit({.pools = {{"gpu", Pool{.name = "gpu", .node_conf = "Weight=7"}}}});
  ASSERT_TRUE(*waits);
  EXPECT_EQ(core::get_string(body(waits), {"desired", "node_conf"}), "Weight=7");
}

TEST_F(ServerTest, AnAgentIsAnsweredWhenTheWaitIsOver) {
  joined();
  const std::string revision = core::get_string(body(sync(kReport)), {"revision"});
  const Answer waits = sync(kReport, revision, 5000);
  loop.advance(4s);
  EXPECT_FALSE(*waits);
  loop.advance(1s);
  EXPECT_TRUE(*waits);
}

TEST_F(ServerTest, ASecondRequestOfAnAgentEndsTheFirst) {
  joined();
  const std::string revision = core::get_string(body(sync(kReport)), {"revision"});
  const Answer first = sync(kReport, revision, 30000), second = sync(kReport, revision, 30000);
  loop.advance(0s);
  EXPECT_TRUE(*first);
  EXPECT_FALSE(*second);
  server.stop();
  EXPECT_TRUE(*second);
}

TEST_F(ServerTest, AnAgentKeepsWhatItHasWhileSlurmConfCannotBeRead) {
  joined();
  host.unreadable = "/etc/slurm/slurm.conf";
  loop.advance(10s);
  EXPECT_THAT(told(sync(kReport)), HasSubstr("503 /etc/slurm/slurm.conf: Input/output error"));
}

TEST_F(ServerTest, TheAuthKeyIsReadLive) {
  joined();
  host.files["/etc/slurm/slurm.key"] = "rotated just now";
  const core::Json key = body(ask("GET", "/v1/key", nullptr, kHost));
  EXPECT_EQ(core::get_string(key, {"file"}), "slurm.key");
  EXPECT_EQ(core::get_string(key, {"content"}), core::base64_encode("rotated just now"));
  EXPECT_NE(core::get_string(key, {"revision"}), *files.key_revision());
  host.files.erase("/etc/slurm/slurm.key");
  EXPECT_EQ(told(ask("GET", "/v1/key", nullptr, kHost)), "503 the coordinator cannot read the auth key");
}

TEST_F(ServerTest, KeysThatAreNotKnownGetNothing) {
  EXPECT_EQ(told(sync(kReport)),
            "403 this host is not known here, and may have been removed; it must join again, with a new token: slurm-enlist "
            "join --again");
  EXPECT_THAT(told(sync(kReport, "", 0, "")), HasSubstr("403"));
  EXPECT_THAT(told(ask("GET", "/v1/pools", nullptr, kHost)), HasSubstr("403 this is not the key of the administrators"));
  joined().revoked = true;
  for (const Answer& answer : {sync(kReport), ask("GET", "/v1/key", nullptr, kHost)})
    EXPECT_THAT(told(answer), HasSubstr("403 node gpu-1 is revoked"));
  EXPECT_EQ(store.commits, 0);
}

TEST_F(ServerTest, WhoIsRefusedIsInTheLogOnceAMinute) {
  const auto lines = [this](const std::string& text) {
    int out = 0;
    for (std::size_t at = log.text.find(text); at != std::string::npos; at = log.text.find(text, at + 1)) ++out;
    return out;
  };
  Report report = kReport;
  report.hostname = "host\na";
  for (int i = 0; i < 3; ++i) told(sync(report));
  EXPECT_EQ(lines("a key is refused"), 1);
  EXPECT_THAT(log.text, HasSubstr(R"("hostname":"host a","key":")" + kHost + "\""));
  joined("gpu-1", kOtherHost).revoked = true;
  told(ask("GET", "/v1/key", nullptr, kOtherHost));
  EXPECT_EQ(lines("node gpu-1 is revoked"), 1);
  loop.advance(1min);
  told(sync(report));
  EXPECT_EQ(lines("a key is refused"), 3);
  for (int i = 0; i < 200; ++i) ask("GET", "/v1/key", nullptr, std::to_string(i));
  EXPECT_EQ(lines("a key is refused"), 102) << "many keys do not fill the disk";
  told(join(join_body("wrong"), kOtherHost));
  EXPECT_THAT(log.text, HasSubstr(R"("msg":"a wrong token is refused","hostname":"host-a","key":")" + kOtherHost + "\""));
}

TEST_F(ServerTest, ARevokedAgentThatWaitsIsTold) {
  joined();
  const std::string revision = core::get_string(body(sync(kReport)), {"revision"});
  const Answer waits = sync(kReport, revision, 30000);
  loop.advance(0s);
  store.set().nodes["gpu-1"].revoked = true;
  server.changed();
  EXPECT_THAT(told(waits), HasSubstr("403 node gpu-1 is revoked"));
}

TEST_F(ServerTest, AnAgentSpeaksForItsNodeOnly) {
  joined();
  for (const auto& [method, path] :
       {std::pair("GET", "/v1/pools"), {"POST", "/v1/pools"}, {"GET", "/v1/nodes"}, {"POST", "/v1/tokens"}})
    EXPECT_THAT(told(ask(method, path, core::Json::object(), kHost)), HasSubstr("403 node gpu-1 may not do this"));
  EXPECT_THAT(told(ask("POST", "/v1/sync", to_json(Sync{kReport}), kAdmin)), HasSubstr("404"));
}

TEST_F(ServerTest, WhatAnAgentSaysIsOneLine) {
  joined();
  Report report = kReport;
  report.error = "first\nsecond\x1b[0m\u009b1mthird \u00a0 \u00db" + std::string(5000, 'x');
  report.conf = "CPUs=4 Comment=\u009b1m";
  sync(report);
  loop.advance(0s);
  const std::string& error = store.contents().nodes.at("gpu-1").report.error;
  EXPECT_LT(error.size(), 1010U);
  EXPECT_THAT(error, ::testing::StartsWith("first second [0m  1mthird \u00a0 \u00dbx"));
  EXPECT_EQ(store.contents().nodes.at("gpu-1").report.conf, "CPUs=4 Comment=  1m");
}

// --- Administrators -----------------------------------------------------------------------------------------------

TEST_F(ServerTest, APoolIsMade) {
  const core::Json wish{{"name", "cpu"}, {"partition_conf", "MaxTime=60"}, {"node_conf", "Weight=5"}};
  EXPECT_THAT(told(ask("POST", "/v1/pools", wish)), HasSubstr("200"));
  EXPECT_EQ(store.contents().pools.at("cpu").partition_conf, "MaxTime=60");
  const core::Json again = body(ask("POST", "/v1/pools", wish));
  EXPECT_EQ(again.value("existed", false), true);
  EXPECT_EQ(store.commits, 1);
  EXPECT_EQ(body(ask("GET", "/v1/pools")).at("pools").size(), 2U);
}

TEST_F(ServerTest, APoolThatCannotBeIsRefused) {
  const auto make = [this](const std::string& name, const std::string& partition = "", const std::string& nodes = "") {
    return told(ask("POST", "/v1/pools", {{"name", name}, {"partition_conf", partition}, {"node_conf", nodes}}));
  };
  EXPECT_THAT(make("GPU"), HasSubstr("422"));
  EXPECT_THAT(make("cpu", "Nodes=a"), HasSubstr("422"));
  EXPECT_THAT(make("cpu", "", "State=IDLE"), HasSubstr("422"));
  EXPECT_THAT(make("cpu", "", "Bogus=1"), HasSubstr("422 node parameters: Bogus"));
  EXPECT_THAT(log.text, HasSubstr(R"("msg":"a command is refused","path":"/v1/pools","error":"node parameters: Bogus)"));
  EXPECT_THAT(make("gpu", "MaxTime=60"), HasSubstr("409 pool gpu exists already"));
  host.files["/etc/slurm/slurm.conf"] = "ClusterName=site\nSlurmctldHost=ctl\nNodeSet=sets Feature=x\n";
  http.on("GET", kBase + "/nodes/", slurm::testing::nodes(slurm::testing::node("login", R"("IDLE")"), 200));
  http.on("GET", kBase + "/partitions/", slurm::testing::partitions(R"({"name":"batch","partition":{"state":["UP"]}})", 200));
  clusters.poll_all_next("slurm");
  loop.advance(10s);
  EXPECT_THAT(make("sets"), HasSubstr("409 the name sets is taken by a NodeSet of Slurm"));
  EXPECT_THAT(make("login"), HasSubstr("409 the name login is taken by a node of Slurm"));
  EXPECT_THAT(make("batch"), HasSubstr("409 the name batch is taken by a partition of Slurm"));
  slurm_is_away();
  EXPECT_THAT(make("cpu"), HasSubstr("503"));
  EXPECT_EQ(store.commits, 0);
}

TEST_F(ServerTest, APoolOfTheFileThatTheStoreHasLostIsTakenUpOrRemoved) {
  store.set().values[kFoundValue] = {{"big", "MaxTime=60"}, {"tpu", ""}};
  store.set().values[kNumbersValue] = {{"big", 7}};
  store.set().values[kProblemsValue] = {{"big", "it is kept"}};
  host.files["/etc/slurm/slurm-enlist.conf"] = "NodeSet=big Feature=big\nPartitionName=big Nodes=big MaxTime=60\n";
  http.on("GET", kBase + "/partitions/", slurm::testing::partitions(R"({"name":"big","partition":{"state":["UP"]}})", 200));
  const std::string job = R"({"job_id":7,"job_state":["RUNNING"],"partition":"tpu"})";
  http.on("GET", kBase + "/jobs/", slurm::testing::jobs(job, 200));
  http.on("GET", kBase + "/jobs/?update_time=", slurm::testing::jobs(job, 200));
  clusters.poll_all_next("slurm");
  loop.advance(10s);
  const core::Json listed = body(ask("GET", "/v1/pools")).at("pools");
  ASSERT_EQ(listed.size(), 3U);
  EXPECT_EQ(listed[0]["name"], "big");
  EXPECT_EQ(listed[0]["partition_conf"], "MaxTime=60");
  EXPECT_EQ(listed[0]["problem"], "it is kept");
  EXPECT_THAT(told(ask("POST", "/v1/tokens", {{"pool", "big"}})), HasSubstr("404 there is no pool big; make it"));

  EXPECT_EQ(told(ask("POST", "/v1/pools", {{"name", "big"}, {"node_conf", "Weight=5"}})).substr(0, 3), "200");
  EXPECT_EQ(store.contents().pools.at("big"),
            (Pool{.name = "big", .partition_conf = "MaxTime=60", .node_conf = "Weight=5", .next_number = 7}));
  EXPECT_EQ(store.contents().values.at(kFoundValue), core::Json({{"tpu", ""}}));

  EXPECT_THAT(told(ask("POST", "/v1/pools/remove", {{"name", "tpu"}})),
              HasSubstr("409 jobs use the partition tpu: 7 (RUNNING)"));
  EXPECT_EQ(told(ask("POST", "/v1/pools/remove", {{"name", "tpu"}, {"force", true}})), "200 {}");
  EXPECT_EQ(store.contents().pools.at("tpu"), (Pool{.name = "tpu", .removing = true})) << "the jobs are waited for";
  EXPECT_FALSE(store.contents().values.contains(kFoundValue));
}

TEST_F(ServerTest, ARemovedPoolIsToldAsLongAsSlurmctldMayHaveIt) {
  const auto dropping = [&] { return body(ask("GET", "/v1/pools")).at("dropping"); };
  EXPECT_EQ(dropping(), core::Json::array());
  slurm::rollout::State state;
  state.offered[std::string(kPoolFile)] = pool_file({});
  state.accepted[std::string(kPoolFile)] = pool_file({{"gpu", {.name = "gpu"}}, {"old", {.name = "old"}}});
  state.offered_hash = "new";
  state.accepted_hash = "before";
  store.set().values[kRolloutValue] = to_json(state);
  store.set().pools["gpu"] = {.name = "gpu"};
  EXPECT_EQ(dropping(), core::Json::array({"old"}));
  state.offered.swap(state.accepted);
  state.accepted.clear();
  state.accepted_hash = state.offered_hash;
  store.set().values[kRolloutValue] = to_json(state);
  EXPECT_EQ(dropping(), core::Json::array({"old"})) << "the next file is not offered yet";
  state.offered[std::string(kPoolFile)] = pool_file({{"gpu", {.name = "gpu"}}});
  store.set().values[kRolloutValue] = to_json(state);
  EXPECT_EQ(dropping(), core::Json::array());
}

TEST_F(ServerTest, AFoundPoolGetsOtherWordsIfSomeAreGiven) {
  store.set().values[kFoundValue] = {{"big", "MaxTime=60"}};
  told(ask("POST", "/v1/pools", {{"name", "big"}, {"partition_conf", "MaxTime=5"}}));
  EXPECT_EQ(store.contents().pools.at("big").partition_conf, "MaxTime=5");
}

TEST_F(ServerTest, ATokenLetsAHostJoin) {
  store.set().tokens.clear();
  store.set().tokens["old"] = {"gpu", loop.clock().wall() - 1s, 1};
  const core::WallTime expires = loop.clock().wall() + 1h;
  const auto token = read_token(core::get_string(body(ask("POST", "/v1/tokens", {{"pool", "gpu"}, {"uses", 2}})), {"token"}));
  ASSERT_TRUE(token) << token.error().message;
  EXPECT_EQ(token->host, "ctl");
  EXPECT_EQ(token->port, 6831);
  EXPECT_EQ(token->coordinator, kOwn);
  EXPECT_THAT(store.contents().tokens, ElementsAre(Pair(digest_of(token->secret), Token{"gpu", expires, 2})));
  EXPECT_THAT(log.text, Not(HasSubstr(token->secret)));
  EXPECT_THAT(told(join(join_body(token->secret))), HasSubstr("200"));
  EXPECT_THAT(told(join(join_body(token->secret), kOtherHost)), HasSubstr("200"));
  EXPECT_THAT(told(join(join_body(token->secret), std::string(64, '3'))), HasSubstr("401"));
  EXPECT_THAT(log.text, Not(HasSubstr(token->secret)));
}

TEST_F(ServerTest, TokensHaveLimits) {
  EXPECT_THAT(told(ask("POST", "/v1/tokens", {{"pool", "no"}})), HasSubstr("404 there is no pool no"));
  EXPECT_THAT(told(ask("POST", "/v1/tokens", {{"pool", "gpu"}, {"valid_for_s", 0}})), HasSubstr("422 a token is valid for"));
  EXPECT_THAT(told(ask("POST", "/v1/tokens", {{"pool", "gpu"}, {"uses", 0}})), HasSubstr("422 a token has 1 to 10000 uses"));
  EXPECT_THAT(told(ask("POST", "/v1/tokens", "text")), HasSubstr("422"));
}

TEST_F(ServerTest, NodesAreListed) {
  joined();
  const core::Json nodes = body(ask("GET", "/v1/nodes"));
  ASSERT_EQ(nodes.at("nodes").size(), 1U);
  EXPECT_EQ(core::get_string(nodes.at("nodes").at(0), {"name"}), "gpu-1");
  EXPECT_THAT(told(ask("GET", "/v1/other")), HasSubstr("404"));
  EXPECT_EQ(core::get_string(body(ask("GET", "/v1/nodes")), {"store_problem"}), "");
  store.full = true;
  EXPECT_THAT(told(ask("POST", "/v1/pools", {{"name", "other"}})), HasSubstr("503"));
  EXPECT_EQ(core::get_string(body(ask("GET", "/v1/nodes")), {"store_problem"}), "the disk is full");
  EXPECT_THAT(told(ask("DELETE", "/v1/nodes")), HasSubstr("405"));
}

// --- Leaving ------------------------------------------------------------------------------------------------------

core::Json of_nodes(const std::vector<std::string>& names) {
  return {{"nodes", names}};
}

TEST_F(ServerTest, NodesLeaveAllOrNone) {
  joined();
  joined("gpu-3", kOtherHost);
  EXPECT_EQ(told(ask("POST", "/v1/nodes/leave", of_nodes({"gpu-1", "x"}))).substr(0, 23), "404 there is no node x;");
  EXPECT_FALSE(store.contents().nodes.at("gpu-1").leaving.wanted);
  EXPECT_EQ(told(ask("POST", "/v1/nodes/leave", of_nodes({}))), "422 name at least one node");
  EXPECT_EQ((*ask("POST", "/v1/nodes/leave", of_nodes({"gpu-1"})) ? 0 : 1), 1) << "the answer comes when it is stored";
  loop.advance(1s);
  const Node& node = store.contents().nodes.at("gpu-1");
  EXPECT_TRUE(node.leaving.wanted);
  EXPECT_EQ(node.phase, Phase::kDraining);
  const int commits = store.commits;
  told(ask("POST", "/v1/nodes/leave", of_nodes({"gpu-1"})));
  EXPECT_EQ(store.commits, commits) << "a second time is the same";
  told(ask("POST", "/v1/nodes/keep", of_nodes({"gpu-1", "gpu-3"})));
  EXPECT_FALSE(node.leaving.wanted);
  EXPECT_EQ(body(sync({}))["desired"]["leave"], "");
}

TEST_F(ServerTest, ANodeThatMayHaveStoppedCannotBeKept) {
  joined().leaving = {.wanted = true, .stop = true};
  EXPECT_THAT(told(ask("POST", "/v1/nodes/keep", of_nodes({"gpu-1"}))), HasSubstr("409 node gpu-1 cannot be kept"));
  EXPECT_THAT(told(ask("POST", "/v1/nodes/resume", of_nodes({"gpu-1"}))), HasSubstr("409 "));
  EXPECT_TRUE(store.contents().nodes.at("gpu-1").leaving.wanted);
  EXPECT_EQ(told(join(join_body())).substr(0, 3), "409") << "it must have left first";
}

core::Json words_of(const std::string& node, const std::string& words) {
  return {{"nodes", core::Json::array({node})}, {"conf", words}};
}

TEST_F(ServerTest, ANodeGetsOtherWords) {
  joined();
  const Node& node = store.contents().nodes.at("gpu-1");
  EXPECT_EQ(told(ask("POST", "/v1/nodes/config", words_of("gpu-1", "RealMemory=500"))).substr(0, 3), "200");
  EXPECT_EQ(node.node_conf, "") << "it is a wish until nothing runs there";
  EXPECT_EQ(node.configuring.conf, "RealMemory=500");
  EXPECT_TRUE(node.configuring.restarts());
  EXPECT_EQ(node.phase, Phase::kDraining);
  EXPECT_EQ(body(sync({}))["desired"]["leave"], "steps");
  EXPECT_EQ(body(sync({}))["desired"]["node_conf"], "");
  const int commits = store.commits;
  told(ask("POST", "/v1/nodes/config", words_of("gpu-1", "RealMemory=500")));
  EXPECT_EQ(store.commits, commits) << "a second time is the same";

  told(ask("POST", "/v1/nodes/config", words_of("gpu-1", "")));
  EXPECT_FALSE(node.configuring.wanted);
  EXPECT_EQ(node.phase, Phase::kConfirming);
  EXPECT_EQ(body(sync({}))["desired"]["leave"], "");
}

// Slurm may have lost the record that slurmd registered with these parameters.
TEST_F(ServerTest, AnInvalidNodeGetsItsWordsAgain) {
  Node& node = joined();
  node.node_conf = "RealMemory=500";
  node.phase = Phase::kReady;
  told(ask("POST", "/v1/nodes/config", words_of("gpu-1", "RealMemory=500")));
  EXPECT_FALSE(node.configuring.wanted);
  node.phase = Phase::kInvalid;
  EXPECT_EQ(told(ask("POST", "/v1/nodes/config", words_of("gpu-1", "RealMemory=500"))).substr(0, 3), "200");
  EXPECT_TRUE(node.configuring.restarts());
  EXPECT_EQ(node.configuring.conf, "RealMemory=500");
}

TEST_F(ServerTest, KeepTakesTheWishForOtherWordsBack) {
  Node& node = joined();
  node.configuring = {.wanted = true, .conf = "RealMemory=500"};
  EXPECT_EQ(told(ask("POST", "/v1/nodes/keep", of_nodes({"gpu-1"}))).substr(0, 3), "200");
  EXPECT_FALSE(node.configuring.wanted);
  EXPECT_EQ(node.phase, Phase::kConfirming);
  node.configuring = {.wanted = true, .stop = true, .conf = "RealMemory=500"};
  EXPECT_THAT(told(ask("POST", "/v1/nodes/keep", of_nodes({"gpu-1"}))), HasSubstr("409 node gpu-1 is about to start"));
  EXPECT_THAT(told(ask("POST", "/v1/nodes/resume", of_nodes({"gpu-1"}))), HasSubstr("409 "));
  node.leaving.wanted = true;
  EXPECT_EQ(told(ask("POST", "/v1/nodes/keep", of_nodes({"gpu-1"}))).substr(0, 3), "200");
  EXPECT_TRUE(node.configuring.wanted) << "it stays, and gets its parameters";
}

TEST_F(ServerTest, WordsThatSlurmTakesLiveCountAtOnce) {
  joined().node_conf = "Weight=3 Features=a,b";
  const Node& node = store.contents().nodes.at("gpu-1");
  const Phase phase = node.phase;
  told(ask("POST", "/v1/nodes/config", words_of("gpu-1", "Features=b,c")));
  EXPECT_EQ(node.node_conf, "Features=b,c");
  EXPECT_TRUE(node.configuring.live);
  EXPECT_EQ(node.live, (LiveWords{.weight = true, .dropped = {"a"}}));
  EXPECT_EQ(node.phase, phase);
  EXPECT_EQ(body(sync({}))["desired"]["leave"], "");
  EXPECT_EQ(body(sync({}))["desired"]["node_conf"], "Features=b,c");
}

// Requirement 38
TEST_F(ServerTest, WordsThatCannotBeAreRefusedAndChangeNothing) {
  joined().node_conf = "Weight=3";
  const int commits = store.commits;
  for (const auto& [words, why] : std::vector<std::pair<const char*, const char*>>{
           {"Bogus=1", "422 Bogus"}, {"RealMemory=x", "422 RealMemory"}, {"NodeName=x", "422 NodeName"}})
    EXPECT_THAT(told(ask("POST", "/v1/nodes/config", words_of("gpu-1", words))), HasSubstr(why));
  EXPECT_EQ(told(ask("POST", "/v1/nodes/config", words_of("x", "Weight=1"))).substr(0, 3), "404");
  EXPECT_EQ(told(ask("POST", "/v1/nodes/config", words_of("gpu-1", "Weight=1"), kHost)).substr(0, 3), "403");
  EXPECT_EQ(store.commits, commits);
  joined().leaving = {.wanted = true};
  EXPECT_EQ(told(ask("POST", "/v1/nodes/config", words_of("gpu-1", "Weight=1"))), "409 node gpu-1 leaves");
}

TEST_F(ServerTest, AHostThatMayHaveStoppedGetsTheLastWords) {
  joined().configuring = {.wanted = true, .stop = true, .conf = "RealMemory=500"};
  const Node& node = store.contents().nodes.at("gpu-1");
  told(ask("POST", "/v1/nodes/config", words_of("gpu-1", "")));
  EXPECT_TRUE(node.configuring.restarts()) << "slurmd may be stopped, and is started with these";
  EXPECT_EQ(node.configuring.conf, "");
}

TEST_F(ServerTest, AHostSpeaksForItself) {
  joined();
  joined("gpu-3", kOtherHost);
  EXPECT_EQ(told(ask("POST", "/v1/leave", core::Json::object(), kHost)).substr(0, 3), "200");
  EXPECT_TRUE(store.contents().nodes.at("gpu-1").leaving.wanted);
  EXPECT_FALSE(store.contents().nodes.at("gpu-3").leaving.wanted);
  for (const char* path :
       {"/v1/nodes/leave", "/v1/nodes/keep", "/v1/nodes/revoke", "/v1/nodes/drain", "/v1/pools/remove", "/v1/jobs/end"})
    EXPECT_EQ(told(ask("POST", path, of_nodes({"gpu-3"}), kHost)).substr(0, 3), "403") << path;
}

TEST_F(ServerTest, ARevokedHostIsNotAnswered) {
  joined();
  EXPECT_EQ(told(ask("POST", "/v1/nodes/revoke", of_nodes({"gpu-1"}))).substr(0, 3), "200");
  EXPECT_EQ(told(sync({})), "403 node gpu-1 is revoked; join again with a new token of pool gpu");
  EXPECT_EQ(told(ask("GET", "/v1/key", nullptr, kHost)).substr(0, 3), "403");
}

TEST_F(ServerTest, PeopleDrainAndResumeAsWithScontrol) {
  joined();
  std::vector<core::Json> posted;
  http.on("POST", kBase + "/node/gpu-1", [&](const net::HttpRequest& request) -> slurm::FakeTransport::Answer {
    posted.push_back(*core::parse_json(request.body));
    return slurm::testing::done();
  });
  core::Json wish = of_nodes({"gpu-1"});
  EXPECT_EQ(told(ask("POST", "/v1/nodes/drain", wish)).substr(0, 3), "422") << "people say why";
  wish["reason"] = "slurm-enlist: joining";
  EXPECT_EQ(told(ask("POST", "/v1/nodes/drain", wish)).substr(0, 3), "422") << "our own reasons mean something else";
  wish["reason"] = "bad fan";
  EXPECT_EQ(told(ask("POST", "/v1/nodes/drain", wish)), "200 {}");
  EXPECT_EQ(told(ask("POST", "/v1/nodes/resume", of_nodes({"gpu-1"}))), "200 {}");
  ASSERT_EQ(posted.size(), 2U);
  EXPECT_EQ(posted[0]["state"], core::Json::array({"DRAIN"}));
  EXPECT_EQ(posted[0]["reason"], "bad fan");
  EXPECT_EQ(posted[1]["state"], core::Json::array({"RESUME"}));
  EXPECT_EQ(posted[1]["reason"], "Not responding") << "a reason that is left over would stand for the next drain of Slurm";
  EXPECT_EQ(told(ask("POST", "/v1/nodes/resume", of_nodes({"other"}))).substr(0, 3), "404") << "it is no node of ours";

  // If Slurm refuses to resume the node, the error also says that the leave was cancelled.
  http.on("POST", kBase + "/node/gpu-1", slurm::testing::error(500, 2014, "Invalid node state"));
  EXPECT_THAT(told(ask("POST", "/v1/nodes/resume", of_nodes({"gpu-1"}))), HasSubstr(" Slurm: "));
  store.set().nodes["gpu-1"].leaving.wanted = true;
  EXPECT_THAT(told(ask("POST", "/v1/nodes/resume", of_nodes({"gpu-1"}))),
              HasSubstr(" the node stays with its parameters, but Slurm: "));
  EXPECT_FALSE(store.contents().nodes.at("gpu-1").leaving.wanted);
}

// Requirement 23
TEST_F(ServerTest, OnlyTheJobsOnTheNodeAreEnded) {
  joined();
  const auto row = [](int id, const std::string& state, const std::string& nodes) {
    return R"({"job_id":)" + std::to_string(id) + R"(,"job_state":[")" + state +
           R"("],"name":"train","user_name":"ann","partition":"gpu","nodes":")" + nodes + R"("})";
  };
  const auto rows = row(1, "RUNNING", "gpu-1") + "," + row(2, "RUNNING", "gpu-2") + "," + row(3, "PENDING", "") + "," +
                    row(4, "SUSPENDED", "gpu-[1-2]");
  http.on("GET", kBase + "/jobs/", slurm::testing::jobs(rows));
  std::vector<std::string> ended;
  for (int id = 1; id <= 4; ++id) {
    http.on("DELETE", kBase + "/job/" + std::to_string(id), [&, id](const net::HttpRequest&) -> slurm::FakeTransport::Answer {
      ended.push_back(std::to_string(id));
      if (id == 4) return slurm::testing::error(500, 2002, "Access denied");
      return slurm::testing::done();
    });
  }
  const core::Json reply = body(ask("POST", "/v1/jobs/end", {{"node", "gpu-1"}}));
  EXPECT_THAT(ended, ElementsAre("1", "4"));
  ASSERT_EQ(reply["jobs"].size(), 2U);
  EXPECT_EQ(reply["jobs"][0]["user"], "ann");
  EXPECT_EQ(reply["jobs"][0]["name"], "train");
  EXPECT_EQ(reply["jobs"][1]["nodes"], "gpu-[1-2]") << "it is told which other nodes a job held";
  EXPECT_FALSE(reply["jobs"][0].contains("error"));
  EXPECT_TRUE(reply["jobs"][1].contains("error"));
  EXPECT_EQ(told(ask("POST", "/v1/jobs/end", {{"node", "x"}})), "404 there is no node x");
  EXPECT_EQ(told(ask("POST", "/v1/jobs/end", core::Json::object())).substr(0, 3), "404") << "nobody means all nodes";
}

// Requirement 49
TEST_F(ServerTest, APoolWithJobsIsNotRemovedByMistake) {
  const std::string job = R"({"job_id":7,"job_state":["RUNNING"],"partition":"gpu","nodes":"gpu-1"})";
  http.on("GET", kBase + "/jobs/", slurm::testing::jobs(job, 200));
  http.on("GET", kBase + "/jobs/?update_time=", slurm::testing::jobs(job, 200));
  loop.advance(10s);
  EXPECT_THAT(told(ask("POST", "/v1/pools/remove", {{"name", "gpu"}})),
              HasSubstr("409 jobs use the partition gpu: 7 (RUNNING)"));
  EXPECT_EQ(told(ask("POST", "/v1/pools/remove", {{"name", "x"}})).substr(0, 3), "404");
  EXPECT_FALSE(store.contents().pools.at("gpu").removing);
  EXPECT_EQ(told(ask("POST", "/v1/pools/remove", {{"name", "gpu"}, {"force", true}})), "200 {}");
  EXPECT_TRUE(store.contents().pools.at("gpu").removing);
  EXPECT_TRUE(store.contents().tokens.empty());
  EXPECT_EQ(told(ask("POST", "/v1/tokens", {{"pool", "gpu"}})), "409 pool gpu is being removed");
  EXPECT_EQ(told(ask("POST", "/v1/pools", {{"name", "gpu"}})).substr(0, 3), "409");
}

// Requirement 49
TEST_F(ServerTest, AJobThatWasSubmittedJustNowKeepsItsPool) {
  loop.advance(10s);
  const std::string job = R"({"job_id":7,"job_state":["PENDING"],"partition":"cpu,gpu"})";
  http.on("GET", kBase + "/jobs/", slurm::testing::jobs(job, 200));
  http.on("GET", kBase + "/jobs/?update_time=", slurm::testing::jobs(job, 200));
  EXPECT_THAT(told(ask("POST", "/v1/pools/remove", {{"name", "gpu"}})),
              HasSubstr("409 jobs use the partition gpu: 7 (PENDING)"));
  EXPECT_FALSE(store.contents().pools.at("gpu").removing);
}

TEST_F(ServerTest, ANumberIsNotUsedAgainByAnotherPoolOfTheName) {
  store.set().pools.clear();
  store.set().values[kNumbersValue] = {{"gpu", 7}};
  told(ask("POST", "/v1/pools", {{"name", "gpu"}, {"next_number", 1}}));
  EXPECT_EQ(store.contents().pools.at("gpu").next_number, 7);
}

// --- The rotation of the auth key ---------------------------------------------------------------------------------

TEST_F(ServerTest, AnAdministratorRotatesTheKey) {
  EXPECT_THAT(told(ask("POST", "/v1/rotation", core::Json::object())), HasSubstr("422 the key is in slurm.key"));
  host.files["/etc/slurm/slurm.jwks"] =
      core::Json{{"keys", {{{"alg", "HS256"}, {"kty", "oct"}, {"kid", "a"}, {"k", core::base64_encode(kAuthKey)}}}}}.dump();
  files.start();
  loop.advance(100ms);
  joined();
  EXPECT_EQ(told(ask("POST", "/v1/rotation", {{"also", {"login1"}}}, kHost)),
            "403 node gpu-1 may not do this: POST /v1/rotation");
  EXPECT_EQ(told(ask("POST", "/v1/rotation/acknowledge", {{"hosts", {"login1"}}, {"phase", "Spread"}})),
            "409 no rotation runs");
  EXPECT_EQ(told(ask("POST", "/v1/rotation", {{"lifetime_s", -1}})), "422 lifetime_s must be at most 7 days");
  EXPECT_EQ(told(ask("POST", "/v1/rotation", {{"also", {"a b"}}})), "422 --also a b: must be the name of a host");
  EXPECT_EQ(told(ask("POST", "/v1/rotation", {{"also", {"login[1-2],db"}}})), "200 " + core::canonical(rotation));
  EXPECT_EQ(store.contents().values.at("key-rotation")["also"], (core::Json{"db", "login1", "login2"}));
  EXPECT_EQ(told(ask("POST", "/v1/rotation", core::Json::object())), "409 a rotation runs: see slurm-enlist rotate status");
  EXPECT_EQ(told(ask("GET", "/v1/rotation")), "200 " + core::canonical(rotation));
  rotation["hosts"] = {{{"host", "login1"}, {"acknowledge", true}}};
  EXPECT_THAT(told(ask("POST", "/v1/rotation/acknowledge", {{"hosts", {"login2"}}, {"phase", "Spread"}})),
              HasSubstr("404 the rotation does not wait"));
  EXPECT_EQ(told(ask("POST", "/v1/rotation/acknowledge", {{"hosts", {"login1"}}, {"phase", "Spread"}})),
            "200 " + core::canonical(rotation));
  EXPECT_EQ(told(ask("POST", "/v1/rotation/without", {{"nodes", {"gpu-9"}}})), "404 there is no node gpu-9");
  EXPECT_EQ(told(ask("POST", "/v1/rotation/other", core::Json::object())), "404 there is no /v1/rotation/other");
  EXPECT_EQ(told(ask("POST", "/v1/rotation/abandon", core::Json::object())), "200 " + core::canonical(rotation));
}

}  // namespace
}  // namespace enlist
