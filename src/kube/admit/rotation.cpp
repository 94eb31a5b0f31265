#include "kube/admit/rotation.hpp"

#include <algorithm>
#include <vector>

namespace kube {
namespace {

/// The most authorities that are stored. A rotation needs two. Without a limit, two writers of the Secret could make the list
/// grow for ever.
constexpr std::size_t kMostAuthorities = 10;

}  // namespace

std::string unexpired(const std::string& authorities, core::WallTime now) {
  std::vector<std::string> kept;
  for (const std::string& authority : net::split_certificates(authorities)) {
    const auto expiry = net::expiry_of(authority);
    const bool good = expiry && *expiry > now && std::ranges::find(kept, authority) == kept.end();
    if (good && kept.size() < kMostAuthorities) kept.push_back(authority);
  }
  std::string out;
  for (const std::string& authority : kept) out += authority;
  return out;
}

RotationDecision decide_rotation(const StoredCertificate& stored, const RotationRules& rules, bool trusted,
                                 core::WallTime now) {
  const auto check = [&](const std::string& cert, const std::string& key) {
    return net::check_server(cert, key, stored.authorities, rules.dns_name, now);
  };
  const bool has_next = !stored.next_cert.empty() || !stored.next_key.empty();
  const auto next = check(stored.next_cert, stored.next_key);
  if (const auto good = check(stored.cert, stored.key); !good) {
    return {next ? Rotation::kPromote : Rotation::kReplace, good.error().message};
  }
  if (has_next) {
    if (!next) return {Rotation::kPrepare, next.error().message};
    return trusted ? RotationDecision{Rotation::kPromote, "its authority is trusted"} : RotationDecision{};
  }
  const auto expiry = net::expiry_of(stored.cert);
  if (expiry && *expiry - now > rules.renew_before) return {};
  return {Rotation::kPrepare, "the certificate expires soon"};
}

StoredCertificate rotate(Rotation what, const StoredCertificate& stored, const std::string& published, const MakeIdentity& make,
                         core::WallTime now) {
  StoredCertificate out = stored;
  if (what == Rotation::kReplace) {
    const net::ServerIdentity made = make();
    out = {made.authority + stored.authorities + "\n" + published, made.cert, made.key, "", ""};
  } else if (what == Rotation::kPrepare) {
    const net::ServerIdentity made = make();
    out.authorities = made.authority + stored.authorities;
    out.next_cert = made.cert;
    out.next_key = made.key;
  } else if (what == Rotation::kPromote) {
    out = {stored.authorities, stored.next_cert, stored.next_key, "", ""};
  }
  out.authorities = unexpired(out.authorities, now);
  return out;
}

}  // namespace kube
