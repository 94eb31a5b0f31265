// Connects a client to a simulated server without sockets: latencies, reordering and faults on virtual time.
//
//   sim::Transport transport(loop, host, server, faults, loop.random().fork());
//   kube::Client client(host, random, transport, credentials, options);
//
// Requests travel on the network's loop, and are carried out even if the client has died or given up meanwhile. Replies arrive
// on the client's loop, if the client still exists. The bytes of one stream stay in order; everything else can be reordered.
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
  core::Duration slow{8000};  ///< The maximum delay of a kSlow reply or of a delayed stream.
};

class Transport final : public net::HttpTransport {
 public:
  Transport(core::Loop& network, core::Loop& client, Server& server, Faults& faults, SeededRandom random, Latency latency = {});
  ~Transport() override;

  RequestId send(net::HttpRequest request, Done done) override;
  RequestId stream(net::HttpRequest request, net::StreamHandler handler) override;
  void cancel(RequestId id) override;

  /// Sets the function to call when a fault kills the client. Default: Faults::on_crash.
  void set_on_crash(std::function<void()> on_crash);
  /// Breaks every open stream and loses every request under way, like a broken network or a crashed server.
  void cut_all();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace sim
