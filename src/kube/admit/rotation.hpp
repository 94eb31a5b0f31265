// Pure functions that decide which certificate a webhook serves and which certificate authorities the API server trusts.
// kube/admit/serving_certificate.hpp carries out the decisions.
//
// A new certificate has a new authority. The webhook serves the new certificate only once API servers trust the new authority,
// unless the current certificate is no longer valid. API servers trust the authority of the previous certificate until that
// authority expires, so that they accept a replica that still serves the previous certificate.
//
// Folder src/kube/admit: admission webhooks and their certificates. Uses net and kube/client.
#pragma once

#include <functional>
#include <string>

#include "core/clock.hpp"
#include "net/certificate.hpp"

namespace kube {

/// The certificates and keys in the Secret, as PEM texts. "" means absent.
struct StoredCertificate {
  std::string authorities;          ///< The certificates of the authorities, the newest first.
  std::string cert, key;            ///< The certificate to serve.
  std::string next_cert, next_key;  ///< The certificate to serve once its authority is trusted.
  friend bool operator==(const StoredCertificate&, const StoredCertificate&) = default;
};

struct RotationRules {
  std::string dns_name{};                        ///< The name by which the API server calls the webhook.
  core::Duration lifetime{90LL * 24 * 3600000};  ///< The lifetime of a certificate.
  core::Duration renew_before{30LL * 24 * 3600000};
  core::Duration backdate{3600000};  ///< How far notBefore is in the past, for API servers with a slow clock.
};

/// The change that the Secret needs.
enum class Rotation {
  kNone,
  kReplace,  ///< Neither certificate can be used: make another certificate, and serve it at once.
  kPrepare,  ///< The certificate expires soon, or the next one is unusable: make a new next certificate.
  kPromote,  ///< Serve the next certificate.
};
struct RotationDecision {
  Rotation what = Rotation::kNone;
  std::string why;
};
/// Returns the change that the Secret needs now. `trusted`: API servers have had time to load all authorities in the Secret.
[[nodiscard]] RotationDecision decide_rotation(const StoredCertificate& stored, const RotationRules& rules, bool trusted,
                                               core::WallTime now);

using MakeIdentity = std::function<net::ServerIdentity()>;
/// Returns the contents of the Secret after the change `what`. `published`: the authorities that API servers trust now. These
/// authorities stay trusted, because some replicas possibly still serve a certificate that is no longer in the Secret.
[[nodiscard]] StoredCertificate rotate(Rotation what, const StoredCertificate& stored, const std::string& published,
                                       const MakeIdentity& make, core::WallTime now);

/// Returns the authorities that have not expired, in their order. Drops duplicates, and returns at most ten.
[[nodiscard]] std::string unexpired(const std::string& authorities, core::WallTime now);

}  // namespace kube
