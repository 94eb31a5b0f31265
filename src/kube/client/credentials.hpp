// Where the API server is, and how both sides prove who they are: from a kubeconfig, or from the service account of the pod.
//
//   auto credentials = kube::discover_credentials(loop, flags.kubeconfig);
//   if (!credentials) ...
//   net::BeastTransport transport(loop, (*credentials)->endpoint());
//   (*credentials)->on_change([&](const net::Endpoint& e) { (void)transport.set_endpoint(e); });
//   kube::Client client(loop, random, transport, **credentials, options);
//
// Tokens and certificates are read again while the process runs (token 60 s, CA and client certificate 5 min, and on 401),
// because the kubelet rotates them under our feet. Files are read and plugins run off the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/loop.hpp"
#include "core/result.hpp"
#include "kube/client/system.hpp"
#include "net/tls.hpp"

namespace kube {

class Credentials {
 public:
  using Done = std::function<void(core::Result<void>)>;
  virtual ~Credentials() = default;
  [[nodiscard]] virtual const net::Endpoint& endpoint() const = 0;
  /// Put before every target: "" or "/prefix".
  [[nodiscard]] virtual std::string base_path() const { return ""; }
  /// The bearer token to send now: "" when none is needed (a client certificate), nullopt when refresh() must be called first.
  [[nodiscard]] virtual std::optional<std::string> token() const = 0;
  /// Gets a new token (file, plugin), and then calls `done`. Calls that come while one is under way share it. kUnauthorized:
  /// there is no way to get another one.
  virtual void refresh(Done done) = 0;
  /// The namespace of the context or of the pod; "default" when neither says.
  [[nodiscard]] virtual std::string default_namespace() const = 0;
  /// Called on the loop when the certificates of endpoint() were replaced.
  void on_change(std::function<void(const net::Endpoint&)> call) { changed_ = std::move(call); }
  /// Called on the loop when files were read again; false when one could not be. For metrics.
  void on_read(std::function<void(bool good)> call) { read_ = std::move(call); }

 protected:
  std::function<void(const net::Endpoint&)> changed_;
  std::function<void(bool good)> read_;
};

/// A fixed endpoint and token: tests, the simulator, `kubectl proxy`.
class StaticCredentials final : public Credentials {
 public:
  explicit StaticCredentials(net::Endpoint endpoint, std::string token = "")
      : endpoint_(std::move(endpoint)), token_(std::move(token)) {}
  [[nodiscard]] const net::Endpoint& endpoint() const override { return endpoint_; }
  [[nodiscard]] std::optional<std::string> token() const override { return token_; }
  void refresh(Done done) override;
  [[nodiscard]] std::string default_namespace() const override { return "default"; }

 private:
  net::Endpoint endpoint_;
  std::string token_;
};

/// Parses a kubeconfig and opens a context ("" for its current-context). `path` may be several paths joined by ':', merged as
/// kubectl does: the first to name a thing wins. Errors: kNotFound, kInvalid with the place.
core::Result<std::unique_ptr<Credentials>> kubeconfig_credentials(core::Loop& loop, const System& system,
                                                                  const std::string& path, const std::string& context = "");
/// From KUBERNETES_SERVICE_HOST/PORT and /var/run/secrets/kubernetes.io/serviceaccount. Error: kNotFound outside of a pod.
core::Result<std::unique_ptr<Credentials>> in_cluster_credentials(core::Loop& loop, const System& system);
/// `kubeconfig` when given; else $KUBECONFIG; else the pod's service account; else ~/.kube/config.
core::Result<std::unique_ptr<Credentials>> discover_credentials(core::Loop& loop, const std::string& kubeconfig = "",
                                                                const std::string& context = "");

}  // namespace kube
