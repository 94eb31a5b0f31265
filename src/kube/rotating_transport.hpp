// A transport whose TLS material can be replaced while requests are under way: new requests go out with the new certificates, old
// ones end on the old connections.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "kube/credentials.hpp"
#include "net/http.hpp"

namespace kube {

using TransportFactory = std::function<std::unique_ptr<net::HttpTransport>(const Endpoint&)>;

class RotatingTransport final : public net::HttpTransport {
 public:
  RotatingTransport(core::Loop& loop, TransportFactory factory, const Endpoint& endpoint);
  ~RotatingTransport() override;
  void replace(const Endpoint& endpoint);

  RequestId send(net::HttpRequest request, Done done) override;
  RequestId stream(net::HttpRequest request, net::StreamHandler handler) override;
  void cancel(RequestId id) override;

 private:
  struct Generation;
  using GenerationPtr = std::shared_ptr<Generation>;
  struct Entry {
    GenerationPtr generation;
    RequestId inner = 0;
  };
  void finish(RequestId id);

  core::Loop& loop_;
  TransportFactory factory_;
  GenerationPtr current_;
  std::map<RequestId, Entry> entries_;
  RequestId last_ = 0;
};

}  // namespace kube
