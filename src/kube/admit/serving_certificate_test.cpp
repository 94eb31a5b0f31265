#include "kube/admit/serving_certificate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "core/base64.hpp"
#include "kube/testing/client_fixture.hpp"

namespace kube {
namespace {

using namespace std::chrono_literals;
using core::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kSecretPath = "/api/v1/namespaces/ns/secrets";

class Log final : public core::Logger {
 public:
  void log(core::Level level, std::string_view message, std::vector<core::Field> fields) override {
    std::string line(message);
    for (const core::Field& field : fields) line += " " + field.value.dump();
    for (const char* secret : {"PRIVATE", "BEGIN"}) EXPECT_EQ(line.find(secret), std::string::npos) << line;
    if (level == core::Level::kWarn) warnings.push_back(line);
  }
  std::vector<std::string> warnings;
};

/// An API server that has a Secret and a configuration of two webhooks. `refuse_writes` makes it refuse writes.
struct ServingCertificateTest : ::testing::Test, ClientFixture {
  Json secret;  ///< Null: there is none.
  Json configuration = Json::parse(
      R"({"kind": "MutatingWebhookConfiguration", "metadata": {"name": "bridge", "uid": "c", "resourceVersion": "1"},
    "webhooks": [{"name": "a", "clientConfig": {"service": {"namespace": "ns", "name": "bridge"}}},
                 {"name": "other", "clientConfig": {"service": {"namespace": "ns", "name": "other"}, "caBundle": "b3RoZXI="}},
                 {"name": "b", "clientConfig": {"service": {"namespace": "ns", "name": "bridge"}}}]})");
  std::vector<std::string> requests;  ///< The writes, in order: "create Secret".
  bool leads = true;
  int refuse_writes = 0;  ///< The status of all writes; 0: they are carried out.
  std::vector<net::Tls> used;
  bool usable = true;
  Log logger;
  std::optional<ServingCertificate> certificate;

  ServingCertificateTest() {
    client.set_lease_deadline([this]() -> std::optional<core::MonoTime> {
      if (!leads) return {};
      return loop.clock().mono() + 10s;
    });
  }

  /// Starts with certificates that live for nine days and are renewed after six.
  void start() {
    ServingCertificateOptions options{
        .program = "slurm-bridge", .secret = {"ns", "bridge"}, .service = {"ns", "bridge"}, .configuration = "bridge"};
    options.interval = 10min;
    options.rules.lifetime = 9 * 24h;
    options.rules.renew_before = 3 * 24h;
    certificate.emplace(loop, logger, client, options, [this](const net::Tls& tls) -> core::Result<void> {
      if (!usable) return core::fail(core::ErrorCode::kInvalid, "the port is taken");
      used.push_back(tls);
      return {};
    });
    certificate->start();
  }

  /// Runs for this time. Answers all requests.
  void run(core::Duration time) {
    const core::MonoTime end = loop.clock().mono() + time;
    for (;;) {
      loop.run_ready();
      if (!api.sent.empty()) {
        answer();
      } else if (loop.clock().mono() >= end) {
        return;
      } else {
        loop.advance(std::min<core::Duration>(std::max(loop.until_next(), core::Duration{1}), end - loop.clock().mono()));
      }
    }
  }

  void answer() {
    const FakeTransport::Sent sent = std::move(api.sent.front());
    api.sent.pop_front();
    Json& object = sent.request.target.starts_with(kSecretPath) ? secret : configuration;
    if (sent.request.method == "GET") {
      return object.is_null() ? sent.reply(404, status_json(404, "NotFound")) : sent.reply(200, object);
    }
    if (refuse_writes != 0) return sent.reply(refuse_writes, status_json(refuse_writes, "Forbidden", "no right"));
    write(sent, object);
    object["metadata"]["uid"] = "u";
    object["metadata"]["resourceVersion"] = std::to_string(++version);
    sent.reply(200, object);
  }

  void write(const FakeTransport::Sent& sent, Json& object) {
    if (sent.request.method == "POST") {
      requests.emplace_back("create Secret");
      object = sent.body();
    } else if (&object == &secret) {
      requests.emplace_back("patch Secret");
      EXPECT_EQ(sent.body()["metadata"]["resourceVersion"], object["metadata"]["resourceVersion"]);
      object.merge_patch(sent.body());
    } else {
      requests.emplace_back("publish");
      object = object.patch(sent.body());
    }
  }

  [[nodiscard]] std::string value(const char* key) const {
    return core::base64_decode(core::get_string(secret, {"data", key})).value();
  }
  [[nodiscard]] std::string bundle(std::size_t webhook) const {
    return core::base64_decode(core::get_string(configuration["webhooks"][webhook], {"clientConfig", "caBundle"})).value();
  }
  void set(const char* key, const std::string& text) { secret["data"][key] = core::base64_encode(text); }
  /// Checks that a client that trusts only the published authorities accepts the certificate in use.
  void expect_trusted() {
    ASSERT_FALSE(used.empty());
    for (const std::size_t webhook : {0U, 2U}) {
      const auto checked =
          net::check_server(used.back().cert_pem, used.back().key_pem, bundle(webhook), "bridge.ns.svc", loop.clock().wall());
      EXPECT_TRUE(checked) << checked.error().message;
    }
  }

  int version = 1;
};

TEST_F(ServingCertificateTest, TheFirstOneIsMadeAndPublished) {
  start();
  EXPECT_FALSE(certificate->serves());
  run(0s);
  EXPECT_THAT(requests, ElementsAre("create Secret", "publish"));
  EXPECT_EQ(secret["type"], "kubernetes.io/tls");
  EXPECT_EQ(secret["metadata"]["labels"]["app.kubernetes.io/managed-by"], "slurm-bridge");
  EXPECT_THAT(used, SizeIs(1));
  EXPECT_TRUE(certificate->serves());
  expect_trusted();
  EXPECT_EQ(configuration["webhooks"][1]["clientConfig"]["caBundle"], "b3RoZXI=") << "it is not of our Service";
  run(24h);
  EXPECT_THAT(requests, SizeIs(2));
  EXPECT_THAT(used, SizeIs(1));
  EXPECT_THAT(logger.warnings, IsEmpty());
}

TEST_F(ServingCertificateTest, WhoDoesNotLeadServesAndWritesNothing) {
  leads = false;
  start();
  run(5s);
  EXPECT_THAT(used, IsEmpty());
  const auto made =
      net::make_server_identity("slurm-bridge", {"bridge.ns.svc"}, loop.clock().wall(), loop.clock().wall() + 24h);
  secret = {{"kind", "Secret"}, {"metadata", {{"labels", {{"app.kubernetes.io/managed-by", "slurm-bridge"}}}}}};
  set("tls.crt", made.cert);
  set("tls.key", made.key);
  set("ca.crt", made.authority);
  run(1s);
  EXPECT_THAT(used, SizeIs(1));
  EXPECT_THAT(requests, IsEmpty());
}

/// At any moment, API servers that have read the configuration then trust every replica that reads the Secret then.
TEST_F(ServingCertificateTest, ARotationHasNoGap) {
  start();
  run(0s);
  const net::Tls first = used.back();
  const std::string old_bundle = bundle(0);
  run(6 * 24h + 1min);
  EXPECT_THAT(requests, ElementsAre("create Secret", "publish", "patch Secret", "publish"));
  EXPECT_EQ(value("tls.crt"), first.cert_pem) << "API servers may not trust the next one yet";
  EXPECT_FALSE(value("next.crt").empty());
  EXPECT_THAT(bundle(0), HasSubstr(old_bundle));
  EXPECT_NE(bundle(0), old_bundle);
  expect_trusted();
  run(18min);
  EXPECT_THAT(used, SizeIs(1));
  run(2min);
  ASSERT_THAT(used, SizeIs(2));
  EXPECT_NE(used.back(), first);
  EXPECT_FALSE(secret["data"].contains("next.key"));
  EXPECT_THAT(bundle(0), HasSubstr(old_bundle)) << "another replica may still serve the old one";
  expect_trusted();
  run(3 * 24h);
  EXPECT_EQ(bundle(0).find(old_bundle), std::string::npos) << "it has expired";
  expect_trusted();
  run(30 * 24h);
  expect_trusted();
  EXPECT_THAT(logger.warnings, IsEmpty());
}

TEST_F(ServingCertificateTest, ARestartInARotationWaitsAgain) {
  start();
  run(6 * 24h + 5min);
  start();
  run(0s);
  EXPECT_EQ(used.at(1), used.at(0)) << "the old one, which is trusted";
  run(9min);
  EXPECT_THAT(used, SizeIs(2));
  run(2min);
  EXPECT_THAT(used, SizeIs(3));
}

TEST_F(ServingCertificateTest, ASecretThatIsLostOrBrokenIsMadeAgain) {
  start();
  run(0s);
  const std::string old_bundle = bundle(0);
  secret = nullptr;
  run(10min);
  EXPECT_THAT(used, SizeIs(2));
  EXPECT_THAT(bundle(0), HasSubstr(old_bundle)) << "other replicas still serve the one that is lost";
  expect_trusted();
  secret["data"]["tls.key"] = "not base64!";
  run(10min);
  EXPECT_THAT(used, SizeIs(3));
  expect_trusted();
  secret.erase("data");
  run(10min);
  EXPECT_THAT(used, SizeIs(4));
  expect_trusted();
}

TEST_F(ServingCertificateTest, AnotherBundleIsMended) {
  start();
  run(0s);
  configuration["webhooks"][2]["clientConfig"].erase("caBundle");
  run(10min);
  EXPECT_THAT(requests, ElementsAre("create Secret", "publish", "publish"));
  expect_trusted();
}

TEST_F(ServingCertificateTest, ASecretOfSomebodyElseIsServedAndNeverWritten) {
  const auto made =
      net::make_server_identity("cert-manager", {"bridge.ns.svc"}, loop.clock().wall(), loop.clock().wall() + 24h);
  secret = {{"kind", "Secret"}, {"metadata", {{"name", "bridge"}}}};
  set("tls.crt", made.cert);
  set("tls.key", made.key);
  set("ca.crt", made.authority);
  start();
  run(1h);
  EXPECT_THAT(requests, ElementsAre("publish"));
  EXPECT_EQ(bundle(0), made.authority);
  EXPECT_THAT(used, SizeIs(1));
  set("tls.key", "broken");
  run(1h);
  EXPECT_THAT(requests, ElementsAre("publish"));
  EXPECT_THAT(used, SizeIs(1)) << "going on with the one before";
  EXPECT_THAT(logger.warnings, ElementsAre(HasSubstr("Secret ns/bridge: the private key is not the certificate's")));
}

TEST_F(ServingCertificateTest, ARefusedWriteIsToldOnceAndTriedAgain) {
  refuse_writes = 403;
  start();
  run(1min);
  EXPECT_THAT(used, IsEmpty());
  EXPECT_THAT(logger.warnings, ElementsAre(HasSubstr("writing Secret ns/bridge")));
  refuse_writes = 0;
  run(1s);
  EXPECT_THAT(used, SizeIs(1));
}

TEST_F(ServingCertificateTest, WithoutItsConfigurationItServes) {
  configuration = nullptr;
  start();
  run(1h);
  EXPECT_THAT(used, SizeIs(1));
  EXPECT_THAT(logger.warnings, ElementsAre(HasSubstr("MutatingWebhookConfiguration bridge")));
}

TEST_F(ServingCertificateTest, WhatCannotBeUsedIsTriedAgain) {
  usable = false;
  start();
  run(5s);
  EXPECT_FALSE(certificate->serves());
  EXPECT_THAT(logger.warnings, ElementsAre(HasSubstr("the port is taken")));
  usable = true;
  run(1s);
  EXPECT_TRUE(certificate->serves());
}

}  // namespace
}  // namespace kube
