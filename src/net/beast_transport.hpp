// HttpTransport over sockets: HTTP/1.1 with kept connections, TLS or plain. One transport per endpoint.
//
//   net::BeastTransport api(loop, {.scheme = "https", .host = "10.96.0.1", .port = 443, .tls = {.ca_pem = ca}});
//   api.send({.method = "GET", .target = "/version"}, [](core::Result<net::HttpResponse> reply) { ... });
//
// At most max_connections requests of send() run at once. Further requests wait in order while their deadlines run. Streams
// have their own connections and do not count, so watches cannot delay writes. Urgent requests do not count either. No callback
// is called from inside send, stream or cancel. HTTP/2, proxies, redirects, cookies and compression are not supported.
#pragma once

#include <cstddef>
#include <memory>

#include "net/asio_loop.hpp"
#include "net/http.hpp"
#include "net/tls.hpp"

namespace net {

struct TransportOptions {
  std::size_t max_connections = 32;          ///< Limits unary requests that are not urgent.
  core::Duration idle_timeout{60000};        ///< A kept connection is closed after this long without use.
  std::size_t max_reply_bytes = 64UL << 20;  ///< The limit for unary requests that have no limit of their own.
  std::shared_ptr<ReplyBudget> budget{};     ///< Limits the bodies of all unary replies that still exist; null: no limit.
};

class BeastTransport final : public HttpTransport {
 public:
  /// If a certificate or key is malformed, or the scheme is unknown, every request fails with kInvalid. set_endpoint reports
  /// such a mistake at once.
  BeastTransport(AsioLoop& loop, Endpoint endpoint, TransportOptions options = {});
  /// Cancels all requests.
  ~BeastTransport() override;

  /// Errors beyond those of HttpTransport: kInvalid (malformed request or certificate), kInternal (the reply exceeds its limit
  /// or the budget). If a request on a kept connection fails before any byte of its reply has arrived, it is sent once more on
  /// a new connection, provided that nothing of it was sent or its method is idempotent (GET, HEAD, OPTIONS, PUT, DELETE). If
  /// no byte has arrived when it times out, it is not sent again, and all kept connections that carry no request are closed.
  RequestId send(HttpRequest request, Done done) override;
  RequestId stream(HttpRequest request, StreamHandler handler) override;
  void cancel(RequestId id) override;

  /// Sets the endpoint of new connections. Old connections close after their current request. Error: kInvalid (no change).
  core::Result<void> set_endpoint(Endpoint endpoint);
  [[nodiscard]] const Endpoint& endpoint() const;

  /// Counts connections and requests, for metrics and tests.
  struct Stats {
    std::size_t open = 0;      ///< All connections, including kept ones.
    std::size_t idle = 0;      ///< Kept connections that carry no request.
    std::size_t waiting = 0;   ///< Requests that have no connection yet.
    std::uint64_t opened = 0;  ///< Connections opened since the start.
  };
  [[nodiscard]] Stats stats() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace net
