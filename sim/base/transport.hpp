// From a client to a simulated server without sockets: latencies, reordering and faults on virtual time.
//
//   sim::Transport transport(loop, host, server, faults, loop.random().fork());
//   kube::Client client(host, random, transport, credentials, options);
//
// Requests travel on the network's loop and are carried out even if the client has died or given up meanwhile; replies arrive
// on the client's loop, and not at all when it is gone. Bytes of one stream stay in order; everything else may overtake.
#pragma once

#include <functional>
#include <memory>

#include "core/loop.hpp"
#include "net/http.hpp"
#include "sim/base/faults.hpp"
#include "sim/base/random.hpp"
#include "sim/base/server.hpp"

namespace sim {

struct Latency {
  core::Duration least{1};
  core::Duration most{15};
  core::Duration slow{8000};  ///< The most a kSlow reply or a delayed stream takes.
};

class Transport final : public net::HttpTransport {
 public:
  Transport(core::Loop& network, core::Loop& client, Server& server, Faults& faults, SeededRandom random, Latency latency = {});
  ~Transport() override;

  RequestId send(net::HttpRequest request, Done done) override;
  RequestId stream(net::HttpRequest request, net::StreamHandler handler) override;
  void cancel(RequestId id) override;

  /// Who dies when a fault says that the client does; Faults::on_crash, when nobody was named.
  void set_on_crash(std::function<void()> on_crash);
  /// The server behind it may change (a Service whose pod was replaced).
  void set_server(Server& server);
  /// Cuts every open stream and loses every request under way: a broken network, or a server that fell.
  void cut_all();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace sim
