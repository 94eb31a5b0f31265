// Answers /healthz (also as /livez) and /readyz on one HTTP server of a program, and /metrics on another. Each server answers
// only its own paths. So switching off the metrics server, or restricting it by a network policy, covers all metrics.
//
//   net::HttpServer server(loop, {.address = "", .port = 8081},
//                          run::health_handler({.ready = [&] { return manager.synced(); }}));
//
// Folder src/run/shell: what a process needs around its controllers: flags, logs, signals, health, metrics. Uses run and net.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "net/http_server.hpp"

namespace run {

struct HealthChecks {
  std::function<bool()> ready{};    ///< Unset: always ready.
  std::function<bool()> healthy{};  ///< Unset: always healthy. Any answer already shows that the loop runs.
};
/// Returns the metrics in the text format of Prometheus.
using MetricsText = std::function<std::string()>;
/// Returns the bearer token that a request must have. nullopt: the token cannot be read, and all requests are refused. If this
/// function is unset, requests need no token.
using MetricsToken = std::function<std::optional<std::string>()>;

net::HttpResponse answer_health(const HealthChecks& checks, const net::HttpRequest& request);
net::HttpResponse answer_metrics(const MetricsText& text, const MetricsToken& token, const net::HttpRequest& request);
net::HttpServer::Handler health_handler(HealthChecks checks);
net::HttpServer::Handler metrics_handler(MetricsText text, MetricsToken token = {});

}  // namespace run
