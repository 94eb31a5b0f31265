// Makes and checks two kinds of certificates. A server's certificate is signed by an authority, which its clients must have in
// order to trust it. A self-signed certificate is recognized by the fingerprint of its key.
//
//   const net::ServerIdentity made = net::make_server_identity("my webhook", {"webhook.ns.svc"}, now, now + 90 days);
//   auto good = net::check_server(made.cert, made.key, made.authority, "webhook.ns.svc", now);
//
//   const net::SelfSigned own = net::make_self_signed("host");
//   const std::string known_as = *net::fingerprint_of(own.cert);   // Tls::pinned_key, HttpRequest::peer_key
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "core/result.hpp"

struct x509_st;  // OpenSSL's X509.

namespace net {

/// A certificate with its key, and the authority that signed it, as PEM texts. The key of the authority is discarded, so the
/// authority signs nothing else. Each certificate has an authority of its own, which is valid as long as the certificate.
struct ServerIdentity {
  std::string authority, cert, key;
};

/// Makes an identity with a key on the curve P-256. The certificate is valid for these DNS names. Throws if OpenSSL cannot make
/// keys, because then no TLS works.
ServerIdentity make_server_identity(std::string_view common_name, const std::vector<std::string>& dns_names,
                                    core::WallTime not_before, core::WallTime not_after);

/// A certificate that its own key has signed, and the key, as PEM texts.
struct SelfSigned {
  std::string cert, key;
};

/// Makes a key on the curve P-256 and a certificate for it, for clients and servers. The certificate never expires: it is valid
/// from 1970 to 9999, so that a wrong clock does no harm. `common_name`: 1 to 64 characters. Throws if OpenSSL makes no keys.
SelfSigned make_self_signed(std::string_view common_name);
/// Makes a self-signed certificate for an existing key. The certificate never expires. All certificates of one key have the
/// same fingerprint. Error: kInvalid if the key cannot be read or is not on an elliptic curve.
core::Result<SelfSigned> make_self_signed(std::string_view common_name, std::string_view key_pem);

/// Returns the SHA-256 of the public key (DER of SubjectPublicKeyInfo) of the first certificate of a PEM text, as 64 lower-case
/// hexadecimal digits. Error: kInvalid if there is no certificate.
core::Result<std::string> fingerprint_of(std::string_view cert_pem);
/// Returns the same fingerprint for a certificate that OpenSSL has parsed. Private to this folder.
std::string fingerprint_of(const x509_st& cert);

/// Checks that the private key belongs to the first certificate. Error: kInvalid, which describes the problem.
core::Result<void> check_pair(std::string_view cert, std::string_view key);

/// Returns the certificates of a PEM text, each as a PEM text of its own. Drops everything else.
std::vector<std::string> split_certificates(std::string_view pem);

/// Returns the time at which the first certificate of a PEM text expires. Error: kInvalid if there is none.
core::Result<core::WallTime> expiry_of(std::string_view pem);

/// Checks that a client that trusts only `authorities` accepts the certificate at the time `now` for this DNS name, and that
/// the key belongs to the certificate. Error: kInvalid, which describes the problem.
core::Result<void> check_server(std::string_view cert, std::string_view key, std::string_view authorities,
                                const std::string& dns_name, core::WallTime now);

}  // namespace net
