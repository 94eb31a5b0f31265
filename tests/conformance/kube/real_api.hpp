// A client of the API server of KUBECONFIG for conformance tests: one request at a time, and watches. Throws if it cannot reach
// the server.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "core/random.hpp"
#include "kube/client/credentials.hpp"
#include "net/beast_transport.hpp"

namespace sim {

class RealApi {
 public:
  RealApi() {
    auto found = kube::discover_credentials(loop_, std::getenv("KUBECONFIG"));
    if (!found) throw std::runtime_error(found.error().message);
    credentials_ = std::move(*found);
    transport_ = std::make_unique<net::BeastTransport>(loop_, credentials_->endpoint());
  }

  net::HttpResponse call(const net::HttpRequest& request) {
    std::optional<core::Result<net::HttpResponse>> got;
    transport_->send(request, [&](core::Result<net::HttpResponse> reply) { got = std::move(reply); });
    loop_.context().restart();
    while (!got) loop_.context().run_one();
    if (!*got) throw std::runtime_error(got->error().message);
    return **got;
  }

  net::AsioLoop& loop() { return loop_; }
  net::HttpTransport& transport() { return *transport_; }

 private:
  net::AsioLoop loop_;
  std::unique_ptr<kube::Credentials> credentials_;
  std::unique_ptr<net::BeastTransport> transport_;
};

/// Returns the name of a new namespace.
inline std::string new_namespace() {
  return "conformance-" + std::to_string(core::SystemRandom().below(1'000'000'000));
}

}  // namespace sim
