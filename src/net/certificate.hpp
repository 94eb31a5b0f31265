// Makes and checks certificates of servers. Only clients that were given their authority trust them.
//
//   const net::ServerIdentity made = net::make_server_identity("my webhook", {"webhook.ns.svc"}, now, now + 90 days);
//   auto good = net::check_server(made.cert, made.key, made.authority, "webhook.ns.svc", now);
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "core/result.hpp"

namespace net {

/// A certificate with its key, and the authority that signed it, as PEM texts. The key of the authority is not kept: it signs
/// nothing else. So each certificate has an authority of its own, which is valid as long as the certificate.
struct ServerIdentity {
  std::string authority, cert, key;
};

/// Makes an identity with a key on the curve P-256. The certificate is good for these DNS names. Throws if OpenSSL cannot make
/// keys, because nothing works then.
ServerIdentity make_server_identity(std::string_view common_name, const std::vector<std::string>& dns_names,
                                    core::WallTime not_before, core::WallTime not_after);

/// Returns the certificates of a PEM text, each as a PEM text of its own. Drops everything else.
std::vector<std::string> split_certificates(std::string_view pem);

/// Returns the time at which the first certificate of a PEM text expires. Error: kInvalid if there is none.
core::Result<core::WallTime> expiry_of(std::string_view pem);

/// Checks that a client that trusts only `authorities` accepts the certificate at this time, under this DNS name, and that the
/// key is the certificate's. Error: kInvalid with what is wrong.
core::Result<void> check_server(std::string_view cert, std::string_view key, std::string_view authorities,
                                const std::string& dns_name, core::WallTime now);

}  // namespace net
