#include "slinky/slurm_connections.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "kube/cache/record.hpp"
#include "kube/testing/client_fixture.hpp"
#include "slinky/local_wiring.hpp"
#include "slinky/names.hpp"

namespace slinky {
namespace {

using namespace std::chrono_literals;
using core::Json;

/// A slurmrestd that refuses every connection.
class NoServer final : public net::HttpTransport {
 public:
  NoServer(core::Loop& loop, int& asked) : loop_(loop), asked_(asked) {}
  RequestId send(net::HttpRequest, Done done) override {
    ++asked_;
    loop_.after(1ms, [done = std::move(done)] { done(core::fail(core::ErrorCode::kUnavailable, "refused")); });
    return ++last_;
  }
  RequestId stream(net::HttpRequest, net::StreamHandler) override { return 0; }
  void cancel(RequestId) override {}

 private:
  core::Loop& loop_;
  int& asked_;
  RequestId last_ = 0;
};

class SlurmConnectionsTest : public ::testing::Test, protected kube::ClientFixture {
 protected:
  SlurmConnectionsTest() {
    connections.start();
    wiring.wakes_on_slurm(
        "some", [](const slurm::Change& change, const kube::Key& of) -> Keys { return change.health ? Keys{of} : Keys{}; });
  }

  static kube::ObjectPtr object(const std::string& kind, const std::string& name, const Json& spec, int age = 0) {
    return *kube::record_from_json<kube::Object>(
        {{"kind", kind},
         {"metadata",
          {{"namespace", "ns"},
           {"name", name},
           {"uid", name},
           {"creationTimestamp", "2026-01-01T00:00:0" + std::to_string(9 - age) + "Z"}}},
         {"spec", spec}});
  }
  void add_restapi(const std::string& name, int age = 0, int port = 0) {
    Json spec{{"controllerRef", {{"name", "x"}}}};
    if (port != 0) spec["service"] = {{"port", port}};
    restapis.upsert(object("RestApi", name, spec, age));
  }
  void add_pod(const std::string& restapi, bool ready) {
    pods.upsert(*kube::record_from_json<kube::PodRecord>(
        {{"kind", "Pod"},
         {"metadata",
          {{"namespace", "ns"},
           {"name", restapi + "-pod"},
           {"labels", {{"app.kubernetes.io/name", "slurmrestd"}, {"app.kubernetes.io/instance", restapi}}}}},
         {"status", {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", ready ? "True" : "False"}}}}}}}));
  }
  void answer_key(const std::string& secret = "x-jwt-key") {
    api.take("GET", "/api/v1/namespaces/ns/secrets/" + secret)
        .reply(200, kube::object_json("ns", secret, "1", "",
                                      {{"data", {{"jwt.key", "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="}}}}));
    loop.run_ready();
  }

  std::vector<std::string> endpoints;
  int heard = 0;
  int asked = 0;  ///< The number of requests to slurmrestd.
  slurm::Clusters clusters{loop, random, log, [this](const slurm::Endpoint& endpoint) {
                             endpoints.push_back(endpoint.host + ":" + std::to_string(endpoint.port));
                             return std::make_unique<NoServer>(loop, asked);
                           }};
  LocalWiring wiring;
  kube::Cache<kube::Object>& controllers = wiring.cache(caches::kControllers);
  kube::Cache<kube::Object>& restapis = wiring.cache(caches::kRestApis);
  kube::Cache<kube::PodRecord>& pods = wiring.cache(caches::kPods);
  SlurmConnections connections{loop, client, clusters, wiring, [this] { ++heard; }};
};

TEST_F(SlurmConnectionsTest, ConnectsOnceControllerRestApiAndKeyAreThere) {
  add_restapi("r");
  loop.run_ready();
  EXPECT_TRUE(api.sent.empty()) << "no Controller yet";
  controllers.upsert(object("Controller", "x", Json::object()));
  loop.run_ready();
  answer_key();
  EXPECT_TRUE(clusters.contains("ns/x"));
  EXPECT_EQ(endpoints, std::vector<std::string>{"r-restapi.ns:6820"});
}

TEST_F(SlurmConnectionsTest, LeavesOtherNamespacesAlone) {
  wiring.elsewhere = {"ns"};
  controllers.upsert(object("Controller", "x", Json::object()));
  add_restapi("r");
  add_pod("r", true);
  loop.run_ready();
  loop.advance(10s);
  EXPECT_TRUE(api.sent.empty()) << "no Secret is read";
  EXPECT_TRUE(endpoints.empty());
}

TEST_F(SlurmConnectionsTest, UsesTheServicesPortAndTheNamedKey) {
  controllers.upsert(object("Controller", "x", {{"jwtKeyRef", {{"name", "mine"}, {"key", "jwt.key"}}}}));
  add_restapi("r", 0, 8080);
  loop.run_ready();
  answer_key("mine");
  EXPECT_EQ(endpoints, std::vector<std::string>{"r-restapi.ns:8080"});
}

TEST_F(SlurmConnectionsTest, TriesAgainWhileTheKeyIsMissing) {
  controllers.upsert(object("Controller", "x", Json::object()));
  add_restapi("r");
  loop.run_ready();
  api.take("GET", "/api/v1/namespaces/ns/secrets/x-jwt-key").reply(404, {{"kind", "Status"}, {"reason", "NotFound"}});
  loop.run_ready();
  EXPECT_FALSE(clusters.contains("ns/x"));
  loop.advance(5s);
  answer_key();
  EXPECT_TRUE(clusters.contains("ns/x"));
}

TEST_F(SlurmConnectionsTest, PrefersTheOldestReadyOne) {
  controllers.upsert(object("Controller", "x", Json::object()));
  add_restapi("young", 1);
  add_restapi("old", 5);
  add_restapi("older", 8);
  add_pod("old", true);
  add_pod("young", true);
  loop.run_ready();
  answer_key();
  EXPECT_EQ(endpoints.back(), "old-restapi.ns:6820");
  add_pod("old", false);
  loop.run_ready();
  answer_key();
  EXPECT_EQ(endpoints.back(), "young-restapi.ns:6820");
  add_pod("young", false);
  loop.run_ready();
  EXPECT_EQ(endpoints.back(), "young-restapi.ns:6820") << "none is ready: the one that served stays";
}

TEST_F(SlurmConnectionsTest, ForgetsWhatIsGone) {
  controllers.upsert(object("Controller", "x", Json::object()));
  add_restapi("r");
  loop.run_ready();
  answer_key();
  wiring.woken.clear();
  restapis.erase({"ns", "r"});
  loop.run_ready();
  EXPECT_FALSE(clusters.contains("ns/x"));
  EXPECT_EQ(wiring.woken, std::vector<std::string>{"some ns/x"}) << "who reads Slurm sees that it is gone";
}

TEST_F(SlurmConnectionsTest, AClusterThatEndsAtOnceIsAskedNothingMore) {
  for (const bool drain : {false, true}) {
    const Json spec = drain ? Json{{"deletionPolicy", "Drain"}} : Json::object();
    controllers.upsert(object("Controller", "x", spec));
    add_restapi("r");
    loop.run_ready();
    if (!clusters.contains("ns/x")) answer_key();
    ASSERT_TRUE(clusters.contains("ns/x"));
    auto ending = std::make_shared<kube::Object>(*object("Controller", "x", spec));
    ending->meta.deletion_timestamp = core::WallTime{};
    controllers.upsert(ending);
    loop.run_ready();
    EXPECT_EQ(clusters.contains("ns/x"), drain);
  }
}

TEST_F(SlurmConnectionsTest, WhatHasJustBecomeReadyIsAskedAtOnce) {
  controllers.upsert(object("Controller", "x", Json::object()));
  add_restapi("r");
  add_pod("r", false);
  loop.run_ready();
  answer_key();
  loop.advance(60s);
  // Waits for an attempt to connect, so that the next attempt is seconds away.
  for (const int before = asked; asked == before;) loop.advance(100ms);
  const int before = asked;
  loop.advance(2s);
  ASSERT_EQ(asked, before);
  add_pod("r", true);
  loop.advance(100ms);
  EXPECT_EQ(asked, before + 1);
  loop.advance(1500ms);
  EXPECT_GE(asked, before + 3) << "its port answers before it does";
}

TEST_F(SlurmConnectionsTest, TellsWhatSlurmSaysAndReadsTheKeyAgain) {
  controllers.upsert(object("Controller", "x", Json::object()));
  add_restapi("r");
  loop.run_ready();
  answer_key();
  loop.advance(100ms);
  EXPECT_EQ(wiring.woken, std::vector<std::string>{"some ns/x"}) << "its health changed";
  EXPECT_GT(heard, 0);
  loop.advance(6s);
  answer_key();  // the key is read again, because an old key may be why the connection failed
  EXPECT_EQ(endpoints.size(), 1U) << "the same key changes nothing";
}

}  // namespace
}  // namespace slinky
