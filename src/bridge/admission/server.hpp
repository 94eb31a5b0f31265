// The admission webhook of slurm-bridge: a server that has its own certificate and answers with review(). Each replica runs the
// server, not only the replica that leads.
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

  /// Looks for the certificate, and serves once the certificate exists.
  void start();
  [[nodiscard]] bool ready() const;
  /// Answers requests under way, then calls `done`.
  void stop(std::function<void()> done);
  [[nodiscard]] std::uint16_t port() const;  ///< 0 until the server serves.

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bridge::admission
