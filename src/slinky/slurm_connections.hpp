// Maintains the connections to the slurmrestds that serve the clusters. plan_serving (slinky/serving.hpp) selects each
// slurmrestd from the caches. The key that signs our tokens is read from its Secret when a connection is made or fails. Both
// are passed to slurm::Clusters, which alone holds the key, in memory.
//
// A program that knows the address of a slurmrestd and has no RestApi uses slurm::KeyedCluster
// (slurm/snapshot/keyed_cluster.hpp) itself.
//
//   SlurmConnections connections(loop, client, clusters, wiring, [] { ... });
//   connections.start();   // before the caches are fed
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "core/loop.hpp"
#include "kube/client/client.hpp"
#include "slinky/wiring.hpp"
#include "slurm/snapshot/registry.hpp"

namespace slinky {

class SlurmConnections {
 public:
  /// In namespaces outside the wiring's scope no key is read and no connection is made. Each change of one of these clusters is
  /// passed to the wiring, with its Controller. `heard` is called after every poll of any cluster, even without a change,
  /// because gates may have opened.
  /// `only`, if set, is the one Controller whose cluster is connected.
  SlurmConnections(core::Loop& loop, kube::Client& client, slurm::Clusters& clusters, Wiring& wiring,
                   std::function<void()> heard, std::optional<kube::Key> only = std::nullopt);
  ~SlurmConnections();
  SlurmConnections(const SlurmConnections&) = delete;
  SlurmConnections& operator=(const SlurmConnections&) = delete;

  /// Starts listening to the caches. Call it once.
  void start();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace slinky
