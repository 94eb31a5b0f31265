// The admission webhook of slurm-bridge: a server with a certificate of its own, which answers with review(). Each replica
// serves it, not only the one that leads.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "bridge/common/settings.hpp"
#include "core/log.hpp"
#include "kube/app/manager.hpp"
#include "net/http_server.hpp"

namespace bridge::admission {

/// The path of the webhook.
inline constexpr const char* kPath = "/pods";

struct ServerOptions {
  net::ServerOptions listen;
  std::string ns;  ///< The namespace of the Service and of the Secret with the certificate.
  /// The name of the Service, of the Secret, and of the MutatingWebhookConfiguration.
  std::string name;
  /// Returns Observed::too_old (review.hpp). Required.
  std::function<std::string()> too_old;
};

class Server {
 public:
  /// Requires: the manager is not started yet, and outlives the server.
  Server(net::AsioLoop& loop, core::Logger& log, kube::Manager& manager, Settings settings, ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Looks for the certificate. Serves once there is one.
  void start();
  [[nodiscard]] bool ready() const;
  /// Answers requests under way, then calls `done`.
  void stop(std::function<void()> done);
  [[nodiscard]] std::uint16_t port() const;  ///< 0 if it does not serve yet.

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bridge::admission
