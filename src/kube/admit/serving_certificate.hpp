// The certificate of a webhook, made and rotated by the program itself. It is kept in a Secret, so that all replicas serve the
// same one. The process that leads writes the Secret, and the authorities into the configuration of the webhook.
//
//   kube::ServingCertificate certificate(loop, logger, manager.client(), {.secret = {"ns", "bridge"}, ...},
//                                        [&](const net::Tls& tls) { return server.set_certificate(tls); });
//   certificate.start();
//
// A Secret without the program's label belongs to others (cert-manager). The program only serves the certificate in it.
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
  core::Duration publish{600000};  ///< How long API servers may take to learn an authority.
  core::Duration urgent{1000};     ///< The interval while there is nothing to serve.
  RotationRules rules{};           ///< dns_name is set from `service`.
};

class ServingCertificate {
 public:
  /// A function that serves the certificate from now on. If it fails, the previous certificate stays in use.
  using Use = std::function<core::Result<void>(const net::Tls&)>;
  /// The client must be the manager's, so that only the leader writes.
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
