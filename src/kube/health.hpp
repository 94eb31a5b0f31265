// /healthz, /readyz and /metrics for the operator's HTTP server.
//
//   net::HttpServer server(loop, {.address = "", .port = 8081},
//                          kube::health_handler({.ready = [&] { return manager.synced(); },
//                                                .metrics = [&] { manager.collect(); return metrics.text(); }}));
#pragma once

#include <functional>
#include <string>

#include "net/http_server.hpp"

namespace kube {

struct HealthChecks {
  std::function<bool()> ready{};           ///< Unset: always.
  std::function<bool()> healthy{};         ///< Unset: always. That the loop answers at all is most of the check.
  std::function<std::string()> metrics{};  ///< Unset: 404.
};

net::HttpResponse answer_health(const HealthChecks& checks, const net::HttpRequest& request);
net::HttpServer::Handler health_handler(HealthChecks checks);

}  // namespace kube
