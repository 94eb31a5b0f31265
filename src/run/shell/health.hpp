// /healthz and /readyz, and /metrics, for the operator's two HTTP servers. Each serves its own paths only: who turns metrics
// off, or keeps them from others by a network policy, means all of them.
//
//   net::HttpServer server(loop, {.address = "", .port = 8081},
//                          run::health_handler({.ready = [&] { return manager.synced(); }}));
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "net/http_server.hpp"

namespace run {

struct HealthChecks {
  std::function<bool()> ready{};    ///< Unset: always.
  std::function<bool()> healthy{};  ///< Unset: always. That the loop answers at all is most of the check.
};
/// The metrics in the text format of Prometheus.
using MetricsText = std::function<std::string()>;
/// The token that who asks must show, as it is now; nullopt: nobody may, for it cannot be read. Unset: everybody may.
using MetricsToken = std::function<std::optional<std::string>()>;

net::HttpResponse answer_health(const HealthChecks& checks, const net::HttpRequest& request);
net::HttpResponse answer_metrics(const MetricsText& text, const MetricsToken& token, const net::HttpRequest& request);
net::HttpServer::Handler health_handler(HealthChecks checks);
net::HttpServer::Handler metrics_handler(MetricsText text, MetricsToken token = {});

}  // namespace run
