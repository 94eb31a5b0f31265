#include "kube/admit/webhook.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <fstream>

#include "core/base64.hpp"
#include "net/beast_transport.hpp"
#include "net/testing/identity.hpp"
#include "net/testing/loop_test.hpp"

namespace kube {
namespace {

using core::Json;
using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

Json review_json() {
  return {{"apiVersion", "admission.k8s.io/v1"},
          {"kind", "AdmissionReview"},
          {"request",
           {{"uid", "u-1"},
            {"kind", {{"group", "apps"}, {"version", "v1"}, {"kind", "Deployment"}}},
            {"resource", {{"group", "apps"}, {"version", "v1"}, {"resource", "deployments"}}},
            {"subResource", "scale"},
            {"name", "web"},
            {"namespace", "ns"},
            {"operation", "UPDATE"},
            {"userInfo", {{"username", "ada"}, {"groups", {"dev", "ops"}}}},
            {"object", {{"spec", {{"replicas", 2}}}}},
            {"oldObject", {{"spec", {{"replicas", 1}}}}},
            {"dryRun", true}}}};
}

net::HttpRequest post(const Json& body) {
  return {.method = "POST",
          .target = "/review",
          .headers = {{"content-type", "application/json"}},
          .body = body.is_string() ? body.get<std::string>() : body.dump()};
}

net::HttpResponse answer(const AdmissionVerdict& verdict) {
  return answer_review([&](const AdmissionRequest&) { return verdict; }, post(review_json()));
}

TEST(Webhook, AReviewSeesWhatIsAsked) {
  AdmissionRequest seen;
  const auto reply = answer_review(
      [&](const AdmissionRequest& request) {
        seen = request;
        return admit();
      },
      post(review_json()));
  EXPECT_EQ(seen.uid, "u-1");
  EXPECT_EQ(seen.operation, "UPDATE");
  EXPECT_EQ(seen.group + " " + seen.version + " " + seen.kind, "apps v1 Deployment");
  EXPECT_EQ(seen.resource, "deployments");
  EXPECT_EQ(seen.subresource, "scale");
  EXPECT_EQ(seen.key, (Key{"ns", "web"}));
  EXPECT_EQ(seen.user, "ada");
  EXPECT_THAT(seen.groups, ElementsAre("dev", "ops"));
  EXPECT_TRUE(seen.dry_run);
  EXPECT_EQ(seen.object["spec"]["replicas"], 2);
  EXPECT_EQ(seen.old_object["spec"]["replicas"], 1);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.headers.at("content-type"), "application/json");
  EXPECT_EQ(Json::parse(reply.body), (Json{{"apiVersion", "admission.k8s.io/v1"},
                                           {"kind", "AdmissionReview"},
                                           {"response", {{"uid", "u-1"}, {"allowed", true}}}}));
}

TEST(Webhook, ARefusalHasItsReasonAndWarnings) {
  AdmissionVerdict verdict = refuse("two is too many");
  verdict.warnings = {"old field"};
  verdict.patch = Json::array({{{"op", "remove"}, {"path", "/spec"}}});
  EXPECT_EQ(Json::parse(answer(verdict).body)["response"], (Json{{"uid", "u-1"},
                                                                 {"allowed", false},
                                                                 {"status", {{"code", 403}, {"message", "two is too many"}}},
                                                                 {"warnings", {"old field"}}}))
      << "what is refused is not patched";
}

TEST(Webhook, APatchGoesAsBase64) {
  AdmissionVerdict verdict = admit();
  verdict.patch = Json::array({{{"op", "add"}, {"path", "/metadata/labels"}, {"value", Json::object()}}});
  const Json response = Json::parse(answer(verdict).body)["response"];
  EXPECT_EQ(response["patchType"], "JSONPatch");
  const auto bytes = core::base64_decode(response["patch"].get<std::string>());
  ASSERT_TRUE(bytes);
  EXPECT_EQ(Json::parse(*bytes), verdict.patch);
  verdict.patch = Json::array();
  EXPECT_FALSE(Json::parse(answer(verdict).body)["response"].contains("patchType")) << "nothing to change is no patch";
}

TEST(Webhook, BadInputIsAnsweredWithWhatIsWrong) {
  const auto status = [](net::HttpRequest request) {
    return answer_review([](const AdmissionRequest&) { return admit(); }, request);
  };
  Json old = review_json();
  old["apiVersion"] = "admission.k8s.io/v1beta1";
  Json other = review_json();
  other["kind"] = "Pod";
  Json none = review_json();
  none.erase("request");
  Json nobody = review_json();
  nobody["request"].erase("uid");
  for (const Json& body : {Json("{"), Json("[]"), Json("{}"), old, other, none, nobody}) {
    const auto reply = status(post(body));
    EXPECT_EQ(reply.status, 400) << body;
    EXPECT_THAT(reply.body, HasSubstr("not an AdmissionReview of admission.k8s.io/v1: ")) << body;
  }
  EXPECT_THAT(status(post(old)).body, HasSubstr("v1beta1"));
  net::HttpRequest get = post(review_json());
  get.method = "GET";
  EXPECT_EQ(status(get).status, 405);
  net::HttpRequest text = post(review_json());
  text.headers["content-type"] = "text/plain";
  EXPECT_EQ(status(text).status, 415);
  text.headers.clear();
  EXPECT_EQ(status(text).status, 415);
  text.headers["content-type"] = "application/json; charset=utf-8";
  EXPECT_EQ(status(text).status, 200);
}

TEST(Webhook, AReviewThatThrowsIsA500) {
  const auto reply =
      answer_review([](const AdmissionRequest&) -> AdmissionVerdict { throw std::logic_error("secret"); }, post(review_json()));
  EXPECT_EQ(reply.status, 500);
  EXPECT_EQ(reply.body.find("secret"), std::string::npos);
}

class CountingLogger final : public core::Logger {
 public:
  void log(core::Level level, std::string_view, std::vector<core::Field>) override {
    if (level == core::Level::kWarn) ++warnings;
  }
  int warnings = 0;
};

/// Uses loopback sockets, and files as in a mounted Secret: each file is a link into ..data, and ..data is a link to a folder.
class WebhookServerTest : public net::testing::LoopTest {
 protected:
  WebhookServerTest() : folder(fs::temp_directory_path() / ("webhook_test." + std::to_string(getpid()))) {
    fs::create_directories(folder);
    mount("one", first);
    fs::create_symlink("..data/tls.crt", folder / "tls.crt");
    fs::create_symlink("..data/tls.key", folder / "tls.key");
  }
  ~WebhookServerTest() override { fs::remove_all(folder); }
  WebhookServerTest(const WebhookServerTest&) = delete;
  WebhookServerTest& operator=(const WebhookServerTest&) = delete;

  /// Mounts a version like the kubelet: makes a new folder, then swaps the link.
  void mount(const std::string& version, const net::testing::Identity& identity) {
    fs::create_directories(folder / version);
    std::ofstream(folder / version / "tls.crt") << identity.cert;
    std::ofstream(folder / version / "tls.key") << identity.key;
    fs::create_symlink(version, folder / "..tmp");
    fs::rename(folder / "..tmp", folder / "..data");
  }

  WebhookOptions options(core::Duration interval = core::Duration{1}) {
    WebhookOptions out;
    out.files = net::TlsFilesOptions{.cert_file = folder / "tls.crt", .key_file = folder / "tls.key", .interval = interval};
    return out;
  }

  std::unique_ptr<net::BeastTransport> connect(const WebhookServer& server, const net::testing::Identity& authority) {
    return std::make_unique<net::BeastTransport>(
        loop, net::Endpoint{"https", "127.0.0.1", server.port(), {.ca_pem = authority.cert}});
  }
  int ask(net::BeastTransport& transport, net::HttpRequest request = post(review_json())) {
    int status = 0;
    bool over = false;
    transport.send(std::move(request), [&](const core::Result<net::HttpResponse>& reply) {
      over = true;
      status = reply ? reply->status : -1;
    });
    EXPECT_TRUE(run_until([&] { return over; }));
    return status;
  }

  fs::path folder;
  net::testing::Identity first = net::testing::make_identity("IP:127.0.0.1", "first");
  net::testing::Identity second = net::testing::make_identity("IP:127.0.0.1", "second");
  CountingLogger log;
  std::map<std::string, Review> reviews = {{"/review", [](const AdmissionRequest&) { return admit(); }}};
};

TEST_F(WebhookServerTest, AnswersOverTlsByPath) {
  WebhookServer server(loop, log, options(), reviews);
  ASSERT_TRUE(server.start());
  const auto client = connect(server, first);
  net::HttpRequest request = post(review_json());
  request.target = "/review?timeout=10s";
  EXPECT_EQ(ask(*client, request), 200);
  request.target = "/other";
  EXPECT_EQ(ask(*client, request), 404);
}

TEST_F(WebhookServerTest, ANewCertificateIsUsedAndDropsNoConnection) {
  WebhookServer server(loop, log, options(), reviews);
  ASSERT_TRUE(server.start());
  const auto before = connect(server, first);
  ASSERT_EQ(ask(*before), 200);
  mount("two", second);
  ASSERT_TRUE(run_until([&] { return ask(*connect(server, second)) == 200; }));
  EXPECT_EQ(ask(*before), 200);
  EXPECT_EQ(before->stats().opened, 1U) << "its connection lives on";
}

TEST_F(WebhookServerTest, HalfOfAPairIsNotUsedUntilItIsWhole) {
  WebhookServer server(loop, log, options(), reviews);
  ASSERT_TRUE(server.start());
  mount("half", {second.cert, first.key});
  ASSERT_TRUE(run_until([&] { return log.warnings > 1; })) << "it is tried again each time";
  EXPECT_EQ(ask(*connect(server, first)), 200);
  mount("whole", second);
  EXPECT_TRUE(run_until([&] { return ask(*connect(server, second)) == 200; }));
}

TEST_F(WebhookServerTest, WithoutItsFilesItDoesNotStart) {
  WebhookOptions missing = options();
  missing.files->key_file = folder / "none";
  WebhookServer server(loop, log, missing, reviews);
  const auto started = server.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, core::ErrorCode::kNotFound);
  EXPECT_THAT(started.error().message, HasSubstr((folder / "none").string()));
}

TEST_F(WebhookServerTest, ACertificateCanBeGivenInsteadOfFiles) {
  WebhookServer server(loop, log, {}, reviews);
  ASSERT_FALSE(server.set_certificate({.cert_pem = first.cert, .key_pem = second.key}));
  EXPECT_EQ(server.port(), 0) << "it does not serve without a certificate";
  ASSERT_TRUE(server.set_certificate({.cert_pem = first.cert, .key_pem = first.key}));
  EXPECT_EQ(ask(*connect(server, first)), 200);
  ASSERT_FALSE(server.set_certificate({.cert_pem = second.cert, .key_pem = first.key}));
  EXPECT_EQ(ask(*connect(server, first)), 200);
  const std::uint16_t port = server.port();
  ASSERT_TRUE(server.set_certificate({.cert_pem = second.cert, .key_pem = second.key}));
  EXPECT_EQ(ask(*connect(server, second)), 200);
  EXPECT_EQ(ask(*connect(server, first)), -1);
  EXPECT_EQ(server.port(), port);
}

TEST_F(WebhookServerTest, AStopBeforeTheFirstCertificateEnds) {
  WebhookServer server(loop, log, {}, reviews);
  bool stopped = false;
  server.stop([&] { stopped = true; });
  EXPECT_TRUE(run_until([&] { return stopped; }));
}

TEST_F(WebhookServerTest, ABodyThatIsTooLongIsRefused) {
  WebhookOptions small = options();
  small.listen.max_request_bytes = 1000;
  WebhookServer server(loop, log, small, reviews);
  ASSERT_TRUE(server.start());
  Json review = review_json();
  review["request"]["object"]["data"] = std::string(2000, 'x');
  EXPECT_EQ(ask(*connect(server, first), post(review)), 413);
}

TEST_F(WebhookServerTest, AStopAnswersNoMoreConnections) {
  WebhookServer server(loop, log, options(), reviews);
  ASSERT_TRUE(server.start());
  const auto client = connect(server, first);
  ASSERT_EQ(ask(*client), 200);
  bool stopped = false;
  server.stop([&] { stopped = true; });
  ASSERT_TRUE(run_until([&] { return stopped; }));
  EXPECT_EQ(ask(*client), -1);
}

}  // namespace
}  // namespace kube
