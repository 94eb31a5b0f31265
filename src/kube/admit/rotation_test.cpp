#include "kube/admit/rotation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kube {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr auto kDay = 24h;
const core::WallTime kNow = core::parse_rfc3339("2026-01-02T03:04:05Z").value();
const std::string kName = "bridge.ns.svc";

net::ServerIdentity made_at(core::WallTime time, const std::string& name = kName) {
  return net::make_server_identity("bridge", {name}, time - 1h, time + 90 * kDay);
}
StoredCertificate stored(const net::ServerIdentity& identity) {
  return {identity.authority, identity.cert, identity.key, "", ""};
}

struct RotationTest : ::testing::Test {
  RotationRules rules{.dns_name = kName};
  net::ServerIdentity first = made_at(kNow), second = made_at(kNow + 60 * kDay);
  StoredCertificate one = stored(first);
  StoredCertificate both{second.authority + first.authority, first.cert, first.key, second.cert, second.key};

  Rotation decide(const StoredCertificate& of, core::Duration later, bool trusted = true) {
    return decide_rotation(of, rules, trusted, kNow + later).what;
  }
  std::string why(const StoredCertificate& of) { return decide_rotation(of, rules, true, kNow).why; }
  static net::ServerIdentity none() {
    ADD_FAILURE() << "nothing is made";
    return {};
  }
};

TEST_F(RotationTest, AGoodCertificateStaysUntilItExpiresSoon) {
  EXPECT_EQ(decide(one, 0s), Rotation::kNone);
  EXPECT_EQ(decide(one, 60 * kDay - 1s), Rotation::kNone);
  EXPECT_EQ(decide(one, 60 * kDay), Rotation::kPrepare);
}

TEST_F(RotationTest, TheNextOneIsServedWhenItIsTrusted) {
  EXPECT_EQ(decide(both, 60 * kDay, false), Rotation::kNone);
  EXPECT_EQ(decide(both, 60 * kDay, true), Rotation::kPromote);
}

TEST_F(RotationTest, TheNextOneIsServedInPlaceOfABadOne) {
  EXPECT_EQ(decide(both, 91 * kDay, false), Rotation::kPromote) << "the certificate has expired";
  both.key = "";
  EXPECT_EQ(decide(both, 60 * kDay, false), Rotation::kPromote);
}

TEST_F(RotationTest, ABadNextOneIsMadeAgain) {
  both.next_key = first.key;
  EXPECT_EQ(decide(both, 60 * kDay), Rotation::kPrepare);
  both.next_key = second.key;
  both.authorities = first.authority;
  EXPECT_EQ(decide(both, 60 * kDay), Rotation::kPrepare) << "nobody could trust it";
  both.next_cert = "";
  EXPECT_EQ(decide(both, 60 * kDay), Rotation::kPrepare);
}

TEST_F(RotationTest, ABadCertificateIsReplaced) {
  EXPECT_EQ(decide({}, 0s), Rotation::kReplace);
  EXPECT_EQ(decide(one, 90 * kDay + 1s), Rotation::kReplace);
  EXPECT_EQ(decide(one, -2h), Rotation::kReplace) << "it is not valid yet: the clock was wrong when it was made";
  EXPECT_THAT(why({"", first.cert, first.key, "", ""}), StartsWith("certificate refused: "));
  EXPECT_THAT(why({"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", first.cert, first.key, "", ""}),
              StartsWith("certificate refused: "));
  EXPECT_EQ(why({first.authority, "garbage", first.key, "", ""}), "there is no certificate");
  EXPECT_EQ(why({first.authority, first.cert, "garbage", "", ""}), "the private key is not the certificate's");
  EXPECT_EQ(why({first.authority, first.cert, second.key, "", ""}), "the private key is not the certificate's");
  EXPECT_THAT(why(stored(made_at(kNow, "other.ns.svc"))), HasSubstr("hostname mismatch")) << "the Service has another name";
}

TEST_F(RotationTest, AllOfARotation) {
  const core::WallTime soon = kNow + 60 * kDay;
  const auto make = [&] { return second; };
  const StoredCertificate prepared = rotate(Rotation::kPrepare, one, "", make, soon);
  EXPECT_EQ(prepared, both) << "the old one is still served";
  const StoredCertificate promoted = rotate(Rotation::kPromote, prepared, "", none, soon + 1h);
  EXPECT_EQ(promoted, (StoredCertificate{second.authority + first.authority, second.cert, second.key, "", ""}))
      << "replicas may still serve the old one";
  EXPECT_EQ(decide(promoted, 61 * kDay), Rotation::kNone);
  EXPECT_EQ(unexpired(promoted.authorities, kNow + 90 * kDay - 1s), second.authority + first.authority);
  EXPECT_EQ(unexpired(promoted.authorities, kNow + 90 * kDay), second.authority);
}

TEST_F(RotationTest, AReplacementKeepsTheAuthoritiesThatAreInUse) {
  const StoredCertificate bad{"garbage\n" + first.authority, "garbage", "garbage", "garbage", "garbage"};
  const net::ServerIdentity published = made_at(kNow);
  const auto make = [&] { return second; };
  EXPECT_EQ(rotate(Rotation::kReplace, bad, published.authority + first.authority, make, kNow),
            (StoredCertificate{second.authority + first.authority + published.authority, second.cert, second.key, "", ""}));
  StoredCertificate cut = one;
  cut.authorities.pop_back();
  EXPECT_EQ(rotate(Rotation::kReplace, cut, published.authority, make, kNow).authorities,
            second.authority + first.authority + published.authority)
      << "the last line has no end";
  EXPECT_EQ(rotate(Rotation::kReplace, {}, first.authority, make, kNow).authorities, second.authority + first.authority)
      << "the Secret was deleted";
}

TEST_F(RotationTest, TheAuthoritiesAreLimited) {
  std::string many;
  for (int i = 0; i < 12; ++i) many += made_at(kNow).authority;
  const std::string kept = unexpired(first.authority + many + first.authority, kNow);
  EXPECT_EQ(net::split_certificates(kept).size(), 10U);
  EXPECT_THAT(kept, StartsWith(first.authority)) << "the newest come first";
}

}  // namespace
}  // namespace kube
