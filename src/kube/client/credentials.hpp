// The API server's address and the credentials of both sides, from a kubeconfig or from the pod's service account.
//
//   auto credentials = kube::discover_credentials(loop, flags.kubeconfig);
//   if (!credentials) ...
//   net::BeastTransport transport(loop, (*credentials)->endpoint());
//   (*credentials)->on_change([&](const net::Endpoint& e) { (void)transport.set_endpoint(e); });
//   kube::Client client(loop, random, transport, **credentials, options);
//
// Files with tokens and certificates are read again while the process runs, because the kubelet rotates these files. If the
// token is in a file, all files are read every 60 s; otherwise every 5 min. All files are also read after a 401. Other threads
// than the loop's read the files and run the plugins.
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
  /// Returns the path prefix of every request: "" or "/prefix".
  [[nodiscard]] virtual std::string base_path() const { return ""; }
  /// Returns the bearer token to send now; "" if none is needed (a client certificate); nullopt if refresh() must be called
  /// first.
  [[nodiscard]] virtual std::optional<std::string> token() const = 0;
  /// Gets a new token from a file or plugin, then calls `done`. Calls during a refresh share the result of the refresh.
  /// Errors: kUnauthorized if the credentials come neither from a file nor from a plugin; otherwise those of reading the file
  /// or running the plugin.
  virtual void refresh(Done done) = 0;
  /// Returns the namespace of the context or the pod; "default" if neither has one.
  [[nodiscard]] virtual std::string default_namespace() const = 0;
  /// Sets the callback for a change of the certificates in endpoint(). The callback is called on the loop.
  void on_change(std::function<void(const net::Endpoint&)> call) { changed_ = std::move(call); }
  /// Sets the callback for each reading of the files, for metrics, called on the loop. `good`: all files could be read.
  void on_read(std::function<void(bool good)> call) { read_ = std::move(call); }

 protected:
  std::function<void(const net::Endpoint&)> changed_;
  std::function<void(bool good)> read_;
};

/// A fixed endpoint and token, for tests and the simulator.
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

/// Parses a kubeconfig and opens a context ("": its current-context). `path` can be several paths joined by ':'. The files are
/// merged as by kubectl: the first definition of a name counts. Errors: kNotFound; kInvalid with the place of the error;
/// kUnsupported for a setting that cannot be honoured (proxy-url, impersonation ...).
core::Result<std::unique_ptr<Credentials>> kubeconfig_credentials(core::Loop& loop, const System& system,
                                                                  const std::string& path, const std::string& context = "");
/// Reads KUBERNETES_SERVICE_HOST/PORT and /var/run/secrets/kubernetes.io/serviceaccount. Error: kNotFound outside of a pod, or
/// if a file is missing.
core::Result<std::unique_ptr<Credentials>> in_cluster_credentials(core::Loop& loop, const System& system);
/// Uses `kubeconfig`, else $KUBECONFIG, else the pod's service account, else ~/.kube/config. Errors: those of the chosen
/// source.
core::Result<std::unique_ptr<Credentials>> discover_credentials(core::Loop& loop, const std::string& kubeconfig = "",
                                                                const std::string& context = "");

}  // namespace kube
