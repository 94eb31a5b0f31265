// Maintains the connections to the slurmrestds that serve the clusters. For each cluster, plan_serving (slinky/serving.hpp)
// selects the slurmrestd from the caches. When a connection is made or fails, this class reads the key that signs our tokens
// from its Secret, and passes the address and the key to slurm::Clusters. Only slurm::Clusters stores the key, in memory.
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
  /// Reads no key and makes no connection in namespaces outside the wiring's scope. Passes each change of a connected cluster,
  /// with the cluster's Controller, to the wiring. Calls `heard` after every poll of any cluster, even if nothing has changed,
  /// because the poll can open gates that hold back plans. `only`, if set, is the one Controller whose cluster is connected.
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
