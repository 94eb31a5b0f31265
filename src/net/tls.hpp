// Certificates and keys as PEM texts, and where a client connects to. Files are read by others (kube/credentials): they rotate.
#pragma once

#include <cstdint>
#include <string>

namespace net {

struct Tls {
  /// Who may have signed the peer. Client: empty means the system's. Server: empty asks for no certificate.
  std::string ca_pem{};
  std::string cert_pem{};             ///< Our certificate chain; empty: none (a server must have one).
  std::string key_pem{};              ///< Its private key, without a passphrase.
  std::string server_name{};          ///< Client: name to ask for (SNI) and to verify instead of the host's.
  bool insecure_skip_verify = false;  ///< Client: for users who asked for it in their kubeconfig, and nobody else.
  friend bool operator==(const Tls&, const Tls&) = default;
};

struct Endpoint {
  std::string scheme = "http";  ///< "http" or "https".
  std::string host{};           ///< Name or IP address (IPv6 without brackets).
  std::uint16_t port = 80;
  Tls tls{};
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

}  // namespace net
