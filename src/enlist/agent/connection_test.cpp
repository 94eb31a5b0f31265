#include "enlist/agent/connection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base64.hpp"
#include "core/testing/fake_random.hpp"
#include "core/testing/manual_loop.hpp"
#include "enlist/agent/testing/fake_transport.hpp"

namespace enlist {
namespace {

using namespace std::chrono_literals;
using core::ErrorCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Report report(const std::string& error) {
  Report out{.hostname = "h", .boot_id = "b"};
  out.error = error;
  return out;
}

class ConnectionTest : public ::testing::Test {
 protected:
  /// Returns the body of the request that waits at the coordinator; null: none waits.
  core::Json request() {
    loop.run_ready();
    const auto* found = transport.find("/v1/sync");
    return found == nullptr ? core::Json() : core::Json::parse(found->body);
  }
  bool reply(const std::string& revision, Phase phase) {
    const SyncReply message{.desired = {.node = "gpu-1", .pool = "gpu", .cluster = "lab"},
                            .revision = revision,
                            .phase = std::string(to_string(phase)),
                            .message = ""};
    const bool answered = transport.answer("/v1/sync", 200, to_json(message));
    loop.run_ready();
    return answered;
  }
  bool fail() {
    const bool answered = transport.answer("/v1/sync", core::fail(ErrorCode::kUnavailable, "connection refused"));
    loop.run_ready();
    return answered;
  }

  core::ManualLoop loop;
  core::FakeRandom random;
  testing::FakeTransport transport{loop};
  std::vector<std::string> phases, troubles;
  Connection connection{loop,
                        random,
                        transport,
                        {.on_reply = [this](const SyncReply& got) { phases.push_back(got.phase); },
                         .on_trouble = [this](const std::string& why) { troubles.push_back(why); }}};
};

TEST_F(ConnectionTest, TheFirstReportOpensIt) {
  EXPECT_TRUE(request().is_null());
  connection.report(report("one"));
  EXPECT_EQ(request()["report"]["error"], "one");
  EXPECT_EQ(request()["revision"], "");
  EXPECT_EQ(request()["wait_ms"], 0);
}

TEST_F(ConnectionTest, WaitsForNews) {
  connection.report(report(""));
  ASSERT_TRUE(reply("1", Phase::kStarting));
  EXPECT_EQ(request()["revision"], "1");
  EXPECT_EQ(request()["wait_ms"], 1000) << "the phase may change";
  ASSERT_TRUE(reply("2", Phase::kReady));
  EXPECT_EQ(request()["revision"], "2");
  EXPECT_EQ(request()["wait_ms"], 20000);
  EXPECT_THAT(phases, ElementsAre("Starting", "Ready"));
  loop.advance(20s);
  ASSERT_TRUE(reply("2", Phase::kReady));
  EXPECT_EQ(request()["wait_ms"], 20000) << "at once again";
}

TEST_F(ConnectionTest, ANewReportGoesOutAtOnce) {
  connection.report(report("one"));
  ASSERT_TRUE(reply("1", Phase::kReady));
  ASSERT_FALSE(request().is_null());
  connection.report(report("one"));
  EXPECT_EQ(transport.cancelled, 0) << "it is not new";
  connection.report(report("two"));
  EXPECT_EQ(transport.cancelled, 1);
  EXPECT_EQ(request()["report"]["error"], "two");
  EXPECT_EQ(transport.pending.size(), 1U);
}

TEST_F(ConnectionTest, ACoordinatorThatDoesNotWaitIsAskedWithAPause) {
  connection.report(report(""));
  ASSERT_TRUE(reply("1", Phase::kReady));
  ASSERT_FALSE(request().is_null());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(reply("1", Phase::kReady));
    EXPECT_TRUE(request().is_null());
    loop.advance(300ms);
    EXPECT_FALSE(request().is_null());
  }
}

TEST_F(ConnectionTest, BacksOffAndComesBack) {
  connection.report(report("one"));
  std::vector<core::Duration> pauses;
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(fail());
    ASSERT_TRUE(request().is_null());
    pauses.push_back(loop.until_next());
    connection.report(report("new " + std::to_string(i)));
    EXPECT_TRUE(request().is_null()) << "a new report does not hurry";
    loop.advance(pauses.back());
    EXPECT_EQ(request()["report"]["error"], "new " + std::to_string(i));
    EXPECT_EQ(request()["wait_ms"], 0) << "an answer at once tells that it is back";
  }
  EXPECT_EQ(pauses.front(), 300ms);
  for (const core::Duration pause : pauses) {
    EXPECT_GE(pause, 300ms);
    EXPECT_LE(pause, 5s);
  }
  EXPECT_GE(pauses.back(), 2500ms);
  EXPECT_THAT(troubles, ElementsAre("the coordinator does not answer: connection refused")) << "once, and not at the first";
  ASSERT_TRUE(transport.answer("/v1/sync", core::fail(ErrorCode::kUnavailable, "certificate refused")));
  loop.run_ready();
  EXPECT_THAT(troubles.back(), HasSubstr("certificate refused")) << "another cause";
  loop.advance(5s);
  ASSERT_TRUE(reply("1", Phase::kReady));
  ASSERT_TRUE(fail());
  EXPECT_EQ(loop.until_next(), 300ms) << "from the beginning";
  EXPECT_EQ(troubles.size(), 2U);
}

TEST_F(ConnectionTest, ARefusalIsSaidAtOnce) {
  connection.report(report(""));
  transport.answer("/v1/sync", 403, {{"error", "the node was revoked"}});
  loop.run_ready();
  EXPECT_THAT(troubles, ElementsAre("the coordinator refuses this host: the node was revoked"));
  loop.advance(5s);
  EXPECT_FALSE(request().is_null()) << "it may be enlisted again";
}

TEST_F(ConnectionTest, AnAnswerThatCannotBeReadIsNoDesire) {
  connection.report(report(""));
  for (const char* body : {"{", "{}", R"({"desired": {"node": 1}})"}) {
    ASSERT_TRUE(transport.answer("/v1/sync", net::HttpResponse{.status = 200, .headers = {}, .body = body}));
    loop.run_ready();
    loop.advance(5s);
  }
  EXPECT_THAT(phases, IsEmpty());
  EXPECT_THAT(troubles.at(0), HasSubstr("cannot be read"));
}

TEST_F(ConnectionTest, FetchesTheKey) {
  std::optional<core::Result<Connection::Key>> key;
  const auto fetch = [&] { connection.fetch_key([&](core::Result<Connection::Key> got) { key = std::move(got); }); };
  fetch();
  transport.answer("/v1/key", 200, {{"file", "slurm.key"}, {"revision", "k1"}, {"content", core::base64_encode("secret")}});
  loop.run_ready();
  ASSERT_TRUE(key && *key);
  EXPECT_EQ((*key)->content, "secret");
  EXPECT_EQ((*key)->revision, "k1");
  fetch();
  transport.answer("/v1/key", 403, {{"error", "not enlisted"}});
  loop.run_ready();
  EXPECT_EQ(key->error().code, ErrorCode::kForbidden);
  fetch();
  transport.answer("/v1/key",
                   net::HttpResponse{.status = 200, .headers = {}, .body = R"({"content": "secret-of-some-kind!"})"});
  loop.run_ready();
  EXPECT_EQ(key->error().code, ErrorCode::kInternal);
  EXPECT_THAT(key->error().message, Not(HasSubstr("secret")));
}

TEST_F(ConnectionTest, StopCancelsEverything) {
  connection.report(report(""));
  connection.fetch_key([](const core::Result<Connection::Key>&) { FAIL(); });
  connection.stop();
  EXPECT_THAT(transport.pending, IsEmpty());
  connection.report(report("x"));
  loop.advance(1min);
  EXPECT_THAT(transport.pending, IsEmpty());
}

}  // namespace
}  // namespace enlist
