#include "kube/health.hpp"

namespace kube {

namespace {

net::HttpResponse plain(int status, std::string body) {
  return {status, {{"content-type", "text/plain; charset=utf-8"}, {"cache-control", "no-store"}}, std::move(body)};
}

net::HttpResponse check(const std::function<bool()>& good) {
  return !good || good() ? plain(200, "ok") : plain(503, "not ok");
}

}  // namespace

net::HttpResponse answer_health(const HealthChecks& checks, const net::HttpRequest& request) {
  if (request.method != "GET" && request.method != "HEAD") return plain(405, "only GET");
  const std::string path = request.target.substr(0, request.target.find('?'));
  if (path == "/healthz" || path == "/livez") return check(checks.healthy);
  if (path == "/readyz") return check(checks.ready);
  if (path == "/metrics" && checks.metrics) {
    return {200, {{"content-type", "text/plain; version=0.0.4; charset=utf-8"}}, checks.metrics()};
  }
  return plain(404, "not found");
}

net::HttpServer::Handler health_handler(HealthChecks checks) {
  return [checks = std::move(checks)](const net::HttpRequest& request, net::Responder responder) {
    responder.respond(answer_health(checks, request));
  };
}

}  // namespace kube
