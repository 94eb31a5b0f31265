// The network between the hosts and the coordinator in a world: latency, faults, and hosts that are cut off.
//
// A request reaches the coordinator that runs at the time of its arrival. The request is carried out even if its client has
// died meanwhile. The connection proves the key of the client (net::HttpRequest::peer_key).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "net/http.hpp"
#include "sim/programs/enlist/program.hpp"

namespace sim {

class EnlistTransport final : public net::HttpTransport {
 public:
  /// `host`: the client's host; null for an administrator on the coordinator's machine. `on_crash` is called when a fault ends
  /// the client.
  EnlistTransport(World& world, EnlistProgram& program, core::Loop& client, const EnlistHost* host,
                  std::function<void()> on_crash);
  ~EnlistTransport() override;

  RequestId send(net::HttpRequest request, Done done) override;
  RequestId stream(net::HttpRequest request, net::StreamHandler handler) override;
  void cancel(RequestId id) override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace sim
