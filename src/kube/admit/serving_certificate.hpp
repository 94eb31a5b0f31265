// The certificate of a webhook, which the program itself makes and rotates. A Secret stores the certificate, so that all
// replicas serve the same certificate. The leader writes the Secret, and writes the authorities into the configuration of the
// webhook.
//
//   kube::ServingCertificate certificate(loop, logger, manager.client(), {.secret = {"ns", "bridge"}, ...},
//                                        [&](const net::Tls& tls) { return server.set_certificate(tls); });
//   certificate.start();
//
// If the Secret lacks the program's label, another program (cert-manager) owns it. This program then only serves the
// certificate.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/log.hpp"
#include "core/loop.hpp"
#include "kube/admit/rotation.hpp"
#include "kube/client/client.hpp"
#include "net/tls.hpp"

namespace kube {

struct ServingCertificateOptions {
  std::string program{};  ///< The value of the label app.kubernetes.io/managed-by on the Secret.
  Key secret{};
  Key service{};                   ///< The Service of the webhook. Only webhooks that call this Service get the authorities.
  std::string configuration{};     ///< The name of the MutatingWebhookConfiguration.
  core::Duration interval{30000};  ///< How often the Secret and the configuration are read.
  core::Duration publish{600000};  ///< How long API servers can take to learn an authority.
  core::Duration urgent{1000};     ///< The interval while there is no certificate to serve.
  RotationRules rules{};           ///< dns_name is set from `service`.
};

class ServingCertificate {
 public:
  /// A function that serves the given certificate from now on. If the function fails, the previous certificate stays in use.
  using Use = std::function<core::Result<void>(const net::Tls&)>;
  /// `client` must be the manager's client, so that only the leader writes.
  ServingCertificate(core::Loop& loop, core::Logger& logger, Client& client, ServingCertificateOptions options, Use use);
  ~ServingCertificate();
  ServingCertificate(const ServingCertificate&) = delete;
  ServingCertificate& operator=(const ServingCertificate&) = delete;

  void start();
  /// Reports whether a certificate is in use.
  [[nodiscard]] bool serves() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace kube
