#include "net/certificate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

#include "net/beast_transport.hpp"
#include "net/http_server.hpp"
#include "net/testing/loop_test.hpp"

namespace net {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

constexpr const char* kName = "webhook.ns.svc";
const core::WallTime kNow = core::parse_rfc3339("2026-01-02T03:04:05Z").value();
constexpr core::Duration kLifetime = 90 * 24h;

ServerIdentity make(core::WallTime from = kNow) {
  return make_server_identity("webhook", {"other.ns.svc", kName}, from, from + kLifetime);
}
std::string refusal(const core::Result<void>& checked) {
  return checked ? "" : checked.error().message;
}

TEST(Certificate, IsAcceptedByWhoTrustsItsAuthority) {
  const ServerIdentity made = make();
  EXPECT_EQ(refusal(check_server(made.cert, made.key, made.authority, kName, kNow)), "");
  EXPECT_EQ(refusal(check_server(made.cert, made.key, made.authority, "other.ns.svc", kNow)), "");
  const ServerIdentity later = make(kNow + 24h);
  EXPECT_EQ(refusal(check_server(later.cert, later.key, made.authority + later.authority, kName, kNow + 24h)), "");
  EXPECT_EQ(refusal(check_server(made.cert, made.key, made.authority + later.authority, kName, kNow + 24h)), "");
}

TEST(Certificate, IsRefusedWithTheReason) {
  const ServerIdentity made = make(), other = make();
  const auto of = [&](const std::string& authorities, const std::string& name, core::WallTime now) {
    return refusal(check_server(made.cert, made.key, authorities, name, now));
  };
  EXPECT_THAT(of(other.authority, kName, kNow), HasSubstr("issuer"));
  EXPECT_THAT(of("", kName, kNow), HasSubstr("issuer"));
  EXPECT_THAT(of(made.authority, "elsewhere.ns.svc", kNow), HasSubstr("hostname mismatch"));
  EXPECT_THAT(of(made.authority, kName, kNow - 1s), HasSubstr("not yet valid"));
  EXPECT_THAT(of(made.authority, kName, kNow + kLifetime + 1s), HasSubstr("expired"));
  EXPECT_EQ(refusal(check_server(made.cert, other.key, made.authority, kName, kNow)),
            "the private key is not the certificate's");
  EXPECT_EQ(refusal(check_server(made.cert, "", made.authority, kName, kNow)), "the private key is not the certificate's");
  EXPECT_EQ(refusal(check_server("", made.key, made.authority, kName, kNow)), "there is no certificate");
  EXPECT_EQ(refusal(check_server("-----BEGIN CERTIFICATE-----\nAAAA\n", made.key, made.authority, kName, kNow)),
            "there is no certificate");
  EXPECT_THAT(refusal(check_server(made.authority, made.key, made.authority, kName, kNow)), HasSubstr("private key"));
}

TEST(Certificate, ExpiresWithItsAuthority) {
  const ServerIdentity made = make();
  EXPECT_EQ(expiry_of(made.cert).value(), kNow + kLifetime);
  EXPECT_EQ(expiry_of(made.authority).value(), kNow + kLifetime);
  EXPECT_FALSE(expiry_of("nothing"));
}

TEST(Certificate, BundlesAreSplit) {
  const ServerIdentity a = make(), b = make();
  EXPECT_THAT(split_certificates(a.authority + "# a comment\n" + b.authority), ElementsAre(a.authority, b.authority));
  EXPECT_THAT(split_certificates(a.authority + a.key), ElementsAre(a.authority));
  EXPECT_THAT(split_certificates("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" + b.authority),
              ElementsAre(b.authority));
  EXPECT_THAT(split_certificates("-----BEGIN CERTIFICATE-----\nAAAA\n"), IsEmpty());
  EXPECT_THAT(split_certificates(""), IsEmpty());
}

TEST(Certificate, ASelfSignedOneDoesNotExpireAndIsKnownByItsKey) {
  const SelfSigned one = make_self_signed("host"), two = make_self_signed("host");
  EXPECT_EQ(core::format_rfc3339(expiry_of(one.cert).value()), "9999-12-31T23:59:59Z");
  EXPECT_THAT(fingerprint_of(one.cert).value(), MatchesRegex("[0-9a-f]{64}"));
  EXPECT_NE(fingerprint_of(one.cert).value(), fingerprint_of(two.cert).value());
  EXPECT_EQ(refusal(check_pair(one.cert, one.key)), "");
  EXPECT_EQ(refusal(check_pair(one.cert, two.key)), "the private key is not the certificate's");

  const SelfSigned again = make_self_signed("other", one.key).value();
  EXPECT_NE(again.cert, one.cert);
  EXPECT_EQ(again.key, one.key);
  EXPECT_EQ(fingerprint_of(again.cert).value(), fingerprint_of(one.cert).value());
}

TEST(Certificate, AFingerprintIsThatOfTheWholePublicKeyInfo) {
  // openssl x509 -in cert -pubkey -noout | openssl pkey -pubin -outform der | sha256sum
  constexpr const char* kCert = R"(-----BEGIN CERTIFICATE-----
MIIBbTCCAROgAwIBAgIUQ8rFZCWZGGQtyIg//1VHmJlkpGwwCgYIKoZIzj0EAwIw
DDEKMAgGA1UEAwwBeDAeFw0yNjExMzAxNTU0MTBaFw0yNjEyMDExNTU0MTBaMAwx
CjAIBgNVBAMMAXgwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATbXN1M9DTWQbvt
5H7/Pd6oXMKDbx7LzTydckWc3x/GQ4gtfgGSygsWElqU2dVS9RgFNAnCvbuMrzgB
I9ebhOxRo1MwUTAdBgNVHQ4EFgQUWJO9YXAoN3uJ8FtO7btFZ4kjdmIwHwYDVR0j
BBgwFoAUWJO9YXAoN3uJ8FtO7btFZ4kjdmIwDwYDVR0TAQH/BAUwAwEB/zAKBggq
hkjOPQQDAgNIADBFAiEA9iggk0TmiAzi+TceQ+rLKAoQQ8yTcHHjmVB1Gcgefk0C
IDvandFk5yLbWSBnSpBqMync6eikHHHtBjs/XSA20JbM
-----END CERTIFICATE-----
)";
  EXPECT_EQ(fingerprint_of(kCert).value(), "77159d1f31c294d5d72f64e9092893a2053b5f681327576ea4ad3b0d828a33d9");
}

TEST(Certificate, WhatIsNoCertificateHasNoFingerprint) {
  EXPECT_EQ(fingerprint_of("").error().message, "there is no certificate");
  EXPECT_EQ(fingerprint_of(make_self_signed("host").key).error().code, core::ErrorCode::kInvalid);
  EXPECT_EQ(make_self_signed("host", "nonsense").error().code, core::ErrorCode::kInvalid);
  EXPECT_EQ(refusal(check_pair("", "")), "there is no certificate");
}

using CertificateServer = testing::LoopTest;

TEST_F(CertificateServer, ServesClientsThatTrustIt) {
  const core::WallTime now = loop.clock().wall();
  const ServerIdentity made = make_server_identity("server", {"localhost"}, now - 1h, now + 1h);
  HttpServer server(loop, {.use_tls = true, .tls = {.cert_pem = made.cert, .key_pem = made.key}},
                    [](const HttpRequest&, Responder responder) {
                      responder.respond({200, {}, "ok"});
                    });
  ASSERT_TRUE(server.start());
  const auto ask = [&](const std::string& authority) {
    BeastTransport client(loop, {"https", "127.0.0.1", server.port(), {.ca_pem = authority, .server_name = "localhost"}});
    int status = 0;
    client.send({.method = "GET", .target = "/"},
                [&](const core::Result<HttpResponse>& reply) { status = reply ? reply->status : -1; });
    EXPECT_TRUE(run_until([&] { return status != 0; }));
    return status;
  };
  EXPECT_EQ(ask(make().authority + made.authority), 200);
  EXPECT_EQ(ask(make().authority), -1);
}

}  // namespace
}  // namespace net
