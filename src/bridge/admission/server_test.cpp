#include "bridge/admission/server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

#include "bridge/common/names.hpp"
#include "core/base64.hpp"
#include "kube/client/credentials.hpp"
#include "kube/testing/fake_transport.hpp"
#include "net/beast_transport.hpp"
#include "net/testing/loop_test.hpp"

namespace bridge::admission {
namespace {

using core::Json;
using ::testing::HasSubstr;

/// A real server on a loopback socket. The test answers the requests that it sends to the API server.
struct ServerTest : net::testing::LoopTest {
  core::NullLogger log;
  core::FakeRandom random;
  kube::FakeTransport api;
  kube::StaticCredentials credentials{{}};
  kube::Client client{loop, random, api, credentials, {}};
  kube::Manager manager{loop, random, log, client};
  Settings settings{.cluster = "slurm/demo", .managed_namespaces = {"research"}};
  std::string too_old;
  Server server{
      loop, log, manager, settings, {.listen = {}, .ns = "ns", .name = "bridge", .too_old = [this] { return too_old; }}};
  Json secret;
  std::string bundle;

  /// Answers a request of the server for its certificate.
  void answer() {
    const auto sent = std::move(api.sent.front());
    api.sent.pop_front();
    if (sent.request.method == "GET" && sent.request.target.contains("/secrets/"))
      return secret.is_null() ? sent.reply(404, kube::status_json(404, "NotFound")) : sent.reply(200, secret);
    if (sent.request.method == "GET") return sent.reply(200, configuration());
    if (sent.request.method == "POST") return sent.reply(201, secret = sent.body());
    for (const Json& op : sent.body()) {
      if (op["op"] == "add") bundle = core::base64_decode(op["value"].get<std::string>()).value();
    }
    sent.reply(200, configuration());
  }
  static Json configuration() {
    return Json::parse(
        R"({"kind": "MutatingWebhookConfiguration", "metadata": {"name": "bridge", "uid": "c", "resourceVersion": "1"},
      "webhooks": [{"clientConfig": {"service": {"namespace": "ns", "name": "bridge"}}}]})");
  }
  /// Answers the server's request for the list of PriorityClasses.
  void sync(const Json& classes) {
    ASSERT_TRUE(run_until([&] { return !api.streams.empty(); }));
    const auto list = api.take_stream("/apis/scheduling.k8s.io/v1/priorityclasses");
    list.head();
    for (const Json& one : classes) list.event("ADDED", one);
    list.event("BOOKMARK", kube::bookmark_json("5", true));
    ASSERT_TRUE(run_until([&] { return manager.synced(); }));
  }
  void serve() {
    server.start();
    ASSERT_TRUE(run_until([&] {
      if (!api.sent.empty()) answer();
      return server.ready();
    }));
  }

  Json pod = Json::parse(R"({"metadata": {"generateName": "p-"}, "spec": {"containers": [{"name": "c", "image": "i"}],
    "priorityClassName": "normal", "preemptionPolicy": "PreemptLowerPriority", "schedulerName": "default-scheduler"}})");
  /// Sends a request to the webhook, as the API server does.
  Json ask(const Json& object) {
    net::BeastTransport caller(loop, {"https", "127.0.0.1", server.port(), {.ca_pem = bundle, .server_name = "bridge.ns.svc"}});
    const Json body{{"apiVersion", "admission.k8s.io/v1"},
                    {"kind", "AdmissionReview"},
                    {"request",
                     {{"uid", "u"},
                      {"operation", "CREATE"},
                      {"namespace", "research"},
                      {"resource", {{"group", ""}, {"version", "v1"}, {"resource", "pods"}}},
                      {"object", object}}}};
    Json out;
    bool over = false;
    caller.send({.method = "POST",
                 .target = "/pods?timeout=5s",
                 .headers = {{"content-type", "application/json"}},
                 .body = body.dump()},
                [&](const core::Result<net::HttpResponse>& reply) {
                  over = true;
                  if (reply && reply->status == 200) out = Json::parse(reply->body)["response"];
                });
    EXPECT_TRUE(run_until([&] { return over; }));
    return out;
  }
};

TEST_F(ServerTest, AnswersOnceItHasItsCertificateAndTheClasses) {
  manager.start();
  EXPECT_EQ(server.port(), 0);
  serve();
  Json early = ask(pod);
  EXPECT_EQ(early["allowed"], false);
  EXPECT_EQ(early["status"]["code"], 503);
  EXPECT_THAT(early["status"]["message"].get<std::string>(), HasSubstr("starting"));
  sync(
      Json::array({kube::object_json("", "normal", "1", "", {{"globalDefault", true}}), kube::object_json("", "urgent", "2")}));

  const Json answered = ask(pod);
  ASSERT_EQ(answered["allowed"], true) << answered;
  const Json after = pod.patch(Json::parse(core::base64_decode(answered["patch"].get<std::string>()).value()));
  EXPECT_EQ(after["spec"]["schedulingGates"][0]["name"], kGate);
  EXPECT_EQ(after["spec"]["priorityClassName"], kPriorityClass);
  EXPECT_FALSE(after["metadata"].contains("name")) << "Kubernetes generates it";

  too_old = "25.05.9";
  EXPECT_FALSE(ask(pod).contains("patch"));
  EXPECT_THAT(ask(pod)["warnings"].dump(), HasSubstr("25.05.9"));
  too_old.clear();

  pod["spec"]["priorityClassName"] = "urgent";
  EXPECT_THAT(ask(pod)["status"]["message"].get<std::string>(), HasSubstr("\"urgent\" preempts pods"));
  EXPECT_EQ(ask(nullptr)["status"]["code"], 400);
}

TEST_F(ServerTest, AnEndAnswersNoMore) {
  bool early = false;
  server.stop([&] { early = true; });
  EXPECT_TRUE(run_until([&] { return early; })) << "without a certificate there is nothing to end";
  serve();
  bool stopped = false;
  server.stop([&] { stopped = true; });
  ASSERT_TRUE(run_until([&] { return stopped; }));
  EXPECT_TRUE(ask(pod).is_null());
}

}  // namespace
}  // namespace bridge::admission
