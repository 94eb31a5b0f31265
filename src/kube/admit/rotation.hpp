// Which certificate a webhook serves, and which authorities the API server trusts, over time. Pure functions;
// kube/admit/serving_certificate.hpp carries them out.
//
// A new certificate has a new authority. It is served only once API servers trust its authority. The authority of the
// certificate before stays trusted until it expires, so a replica that still serves that certificate is not refused.
//
// Folder src/kube/admit: admission webhooks and their certificates. Uses net and kube/client.
#pragma once

#include <functional>
#include <string>

#include "core/clock.hpp"
#include "net/certificate.hpp"

namespace kube {

/// The contents of the Secret. All are PEM texts; "": there is none.
struct StoredCertificate {
  std::string authorities;          ///< The newest first.
  std::string cert, key;            ///< To be served.
  std::string next_cert, next_key;  ///< To be served when its authority is trusted.
  friend bool operator==(const StoredCertificate&, const StoredCertificate&) = default;
};

struct RotationRules {
  std::string dns_name{};                        ///< Under which the API server calls the webhook.
  core::Duration lifetime{90LL * 24 * 3600000};  ///< Of a certificate.
  core::Duration renew_before{30LL * 24 * 3600000};
  core::Duration backdate{3600000};  ///< For API servers with a slow clock.
};

/// What has to become of the Secret.
enum class Rotation {
  kNone,
  kReplace,  ///< The certificate cannot be used: make another one, and serve it at once.
  kPrepare,  ///< The certificate expires soon, or the next one cannot be used: make the next one.
  kPromote,  ///< Serve the next one.
};
struct RotationDecision {
  Rotation what = Rotation::kNone;
  std::string why;
};
/// `trusted`: API servers have had the time to learn all authorities of the Secret.
[[nodiscard]] RotationDecision decide_rotation(const StoredCertificate& stored, const RotationRules& rules, bool trusted,
                                               core::WallTime now);

using MakeIdentity = std::function<net::ServerIdentity()>;
/// Carries out the decision. `published`: the authorities that API servers trust now. They stay trusted, because replicas may
/// serve a certificate that is lost.
[[nodiscard]] StoredCertificate rotate(Rotation what, const StoredCertificate& stored, const std::string& published,
                                       const MakeIdentity& make, core::WallTime now);

/// Returns the authorities that have not expired, each once and at most ten, in their order.
[[nodiscard]] std::string unexpired(const std::string& authorities, core::WallTime now);

}  // namespace kube
