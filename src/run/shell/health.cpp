#include "run/shell/health.hpp"

#include "core/hash.hpp"

namespace run {

namespace {

net::HttpResponse plain(int status, std::string body) {
  return {status, {{"content-type", "text/plain; charset=utf-8"}, {"cache-control", "no-store"}}, std::move(body)};
}

net::HttpResponse check(const std::function<bool()>& good) {
  return !good || good() ? plain(200, "ok") : plain(503, "not ok");
}

std::string path(const net::HttpRequest& request) {
  return request.target.substr(0, request.target.find('?'));
}

bool reads(const net::HttpRequest& request) {
  return request.method == "GET" || request.method == "HEAD";
}

/// True if the request contains the token. Compares hashes, so that the time of the comparison reveals nothing about the token.
bool shows_token(const net::HttpRequest& request, const MetricsToken& token) {
  const std::optional<std::string> wanted = token();
  const auto shown = request.headers.find("authorization");
  return wanted && !wanted->empty() && shown != request.headers.end() &&
         core::sha256_hex(shown->second) == core::sha256_hex("Bearer " + *wanted);
}

}  // namespace

net::HttpResponse answer_health(const HealthChecks& checks, const net::HttpRequest& request) {
  if (!reads(request)) return plain(405, "only GET");
  const std::string what = path(request);
  if (what == "/healthz" || what == "/livez") return check(checks.healthy);
  if (what == "/readyz") return check(checks.ready);
  return plain(404, "not found");
}

net::HttpResponse answer_metrics(const MetricsText& text, const MetricsToken& token, const net::HttpRequest& request) {
  if (!reads(request)) return plain(405, "only GET");
  if (path(request) != "/metrics") return plain(404, "not found");
  if (token && !shows_token(request, token)) return plain(401, "a bearer token is required");
  return {200, {{"content-type", "text/plain; version=0.0.4; charset=utf-8"}}, text()};
}

net::HttpServer::Handler health_handler(HealthChecks checks) {
  return [checks = std::move(checks)](const net::HttpRequest& request, net::Responder responder) {
    responder.respond(answer_health(checks, request));
  };
}

net::HttpServer::Handler metrics_handler(MetricsText text, MetricsToken token) {
  return [text = std::move(text), token = std::move(token)](const net::HttpRequest& request, net::Responder responder) {
    responder.respond(answer_metrics(text, token, request));
  };
}

}  // namespace run
