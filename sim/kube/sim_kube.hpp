// A whole simulated Kubernetes: the API server (api.hpp), which may be unreachable, with the cluster's controllers and nodes.
//
//   sim::SimLoop loop(seed);
//   sim::SimKube kube(loop, loop.random().fork());
//   kube.add_namespace("default");
//   kube.nodes().add_node("node-1");
//   sim::Transport transport(loop, host, kube, faults, loop.random().fork());   // for the operator under test
//   kube.api().create(...);                                                       // what users do
//
// Runs on virtual time under SimLoop, or on real time under net::AsioLoop, behind sim/base/http_front.hpp.
#pragma once

#include <map>
#include <string>

#include "sim/base/server.hpp"
#include "sim/kube/api.hpp"
#include "sim/kube/controllers.hpp"
#include "sim/kube/kubelet.hpp"

namespace sim {

struct SimKubeOptions {
  ApiOptions api{};
  ControllerOptions controllers{};
  KubeletOptions kubelets{};
};

class SimKube final : public Server {
 public:
  SimKube(core::Loop& loop, SeededRandom random, SimKubeOptions options = {});

  KubeApi& api() { return api_; }
  Kubelets& nodes() { return kubelets_; }
  void add_namespace(const std::string& name);

  /// Makes the API server unreachable (connections are refused, watches end) or reachable again.
  void set_listening(bool listening);

  // Server.
  [[nodiscard]] bool listening() const override { return listening_; }
  net::HttpResponse serve(const net::HttpRequest& request) override { return api_.serve(request); }
  [[nodiscard]] bool is_stream(const net::HttpRequest& request) const override { return KubeApi::is_watch(request); }
  std::expected<StreamId, net::HttpResponse> open(const net::HttpRequest& request, StreamSink sink) override;
  void close(StreamId id) override { api_.close_watch(id); }
  [[nodiscard]] net::HttpResponse fault_reply(int status) const override;

 private:
  SeededRandom random_;
  KubeApi api_;
  KubeControllers controllers_;
  Kubelets kubelets_;
  bool listening_ = true;
};

}  // namespace sim
