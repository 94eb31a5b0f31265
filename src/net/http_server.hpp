// A small HTTP/1.1 server on the loop, for health, metrics and webhooks of our binaries, and for the simulators behind sockets.
//
//   net::HttpServer server(loop, {.port = 8081}, [](net::HttpRequest request, net::Responder responder) {
//     responder.respond({200, {{"content-type", "text/plain"}}, "ok"});
//   });
//   if (auto started = server.start(); !started) ...
//
// Do not expose this server to the internet: it has no rate limits. It has no virtual hosts and no compression either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "net/asio_loop.hpp"
#include "net/http.hpp"
#include "net/tls.hpp"

namespace net {

/// Answers one request once, now or later. Copies refer to the same request. If the last copy is destroyed without an answer,
/// the client gets a 500. If the last copy is destroyed between begin() and end(), the connection is closed. Calls have no
/// effect after the client has disconnected. Use it on the loop's thread only.
class Responder {
 public:
  /// Sends the whole answer.
  void respond(HttpResponse response);
  /// Sends the head of an answer whose body follows in pieces (chunked).
  void begin(int status, Headers headers);
  void write(std::string_view piece);
  void end();
  /// Closes the connection without completing an answer.
  void cut();
  /// Returns false if the client has disconnected or the answer is complete.
  [[nodiscard]] bool open() const;
  /// Returns how many of the written bytes the client's socket has not accepted yet.
  [[nodiscard]] std::size_t backlog() const;
  /// Calls `call` once, in a later loop iteration, if the client disconnects before the answer is complete.
  void on_gone(core::Callback call);

  struct State;
  explicit Responder(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

struct ServerOptions {
  std::string address = "127.0.0.1";  ///< "": all addresses, IPv6 and IPv4.
  std::uint16_t port = 0;             ///< 0: any free port; see HttpServer::port.
  bool use_tls = false;
  Tls tls{};
  std::size_t max_request_bytes = 8UL << 20;  ///< Longer bodies get 413.
  core::Duration idle_timeout{60000};  ///< The longest time from the connect, or the last answer, to the end of a request.
  /// For a further connection, the server closes the one that has been idle longest, or the new one if none is idle.
  std::size_t max_connections = 4096;
  /// If set: reports whether a client with this key (HttpRequest::peer_key) is known. Called before each request is read.
  /// Clients that are not known, or whose handshake is not over, are strangers, who must not be able to fill our memory. A
  /// stranger gets an answer to one short request, and then the connection is closed. While there are max_strangers, new
  /// connections wait. They continue when a stranger is answered or becomes known, or when the connection of a stranger is
  /// closed, because the handshake or request was not complete within three seconds.
  std::function<bool(const std::string& peer_key)> known{};
  std::size_t max_strangers = 128;
  std::size_t max_stranger_bytes = 32UL << 10;  ///< Takes the place of max_request_bytes for strangers.
};

/// Parses "address:port" or "[::1]:port". For all addresses: ":port" or "port". Error: kInvalid.
core::Result<ServerOptions> parse_listen_address(const std::string& text);

class HttpServer {
 public:
  using Handler = std::function<void(HttpRequest, Responder)>;

  HttpServer(AsioLoop& loop, ServerOptions options, Handler handler);
  ~HttpServer();
  /// Binds and listens. Errors: kInvalid (address, certificate), kUnavailable (port taken).
  core::Result<void> start();
  /// Closes the listener and all connections.
  void stop();
  /// Ends without losing a request. Closes the listener and idle connections at once, and each other connection after it has
  /// answered its current request (with "connection: close"). Cuts connections that are still open after `grace`. Calls `done`
  /// once, in a later loop iteration, when all are closed, but never after stop(). A second call restarts the grace period.
  void drain(core::Duration grace, std::function<void()> done);
  /// Returns the port of the listener; 0 before start.
  [[nodiscard]] std::uint16_t port() const;
  /// Sets the certificate for new connections. Error: kInvalid (the old certificate stays in use).
  core::Result<void> set_tls(Tls tls);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace net
