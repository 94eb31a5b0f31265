// Serves a simulated server on real sockets. Injects the same faults as sim::Transport, with three differences: every lost
// request or reply and every refusal is a cut connection, a slow reply takes half a second, and no stream is delayed. Used to
// test the threaded binary under sanitizers, and for timings.
//
//   net::AsioLoop loop;
//   sim::HttpFront front(loop, server, faults, {.port = 0});
//   front.start();
#pragma once

#include <memory>

#include "net/http_server.hpp"
#include "sim/base/faults.hpp"
#include "sim/base/server.hpp"

namespace sim {

class HttpFront {
 public:
  HttpFront(net::AsioLoop& loop, Server& server, Faults& faults, net::ServerOptions options);
  ~HttpFront();
  core::Result<void> start();
  [[nodiscard]] std::uint16_t port() const;
  void stop();
  /// Sets a new certificate for new connections.
  core::Result<void> set_tls(net::Tls tls);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sim
