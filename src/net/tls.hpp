// Certificates and keys as PEM texts, and the endpoint of a client. The files are read elsewhere (net/tls_files.hpp,
// kube/client/credentials.hpp), because their contents change.
#pragma once

#include <cstdint>
#include <string>

namespace net {

struct Tls {
  /// The authorities that sign the peer's certificate. If empty, a client uses the authorities of the system, and a server asks
  /// clients for certificates only if any_client is set.
  std::string ca_pem{};
  std::string cert_pem{};             ///< Our certificate chain; empty: none. A server needs a certificate.
  std::string key_pem{};              ///< The private key of the certificate, without a passphrase.
  std::string server_name{};          ///< Client: sends (SNI) and verifies this name instead of the host.
  bool insecure_skip_verify = false;  ///< Client: trusts any server. Set only if a user's kubeconfig sets it.
  /// Client: trusts only the server whose public key has this fingerprint (fingerprint_of in net/certificate.hpp), whatever the
  /// names and dates in its certificate are. Checks no authority. Uses TLS 1.3 only.
  std::string pinned_key{};
  /// Server: asks each client for a certificate, and accepts any certificate or none. The handshake proves that the client has
  /// the private key, and HttpRequest::peer_key has the fingerprint. Uses TLS 1.3 only, and resumes no sessions.
  bool any_client = false;
  friend bool operator==(const Tls&, const Tls&) = default;
};

struct Endpoint {
  std::string scheme = "http";  ///< "http" or "https".
  std::string host{};           ///< Name, IP address (IPv6 without brackets), or path of a Unix socket ("/run/x.sock").
  std::uint16_t port = 80;
  Tls tls{};
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

}  // namespace net
