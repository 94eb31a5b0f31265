// Maintains the connections to the slurmrestds that serve the clusters. plan_serving (slinky/serving.hpp) selects each
// slurmrestd from the caches. The key that signs our tokens is read from its Secret when a connection is made or fails. Both
// are passed to slurm::Clusters, which alone holds the key, in memory.
//
//   SlurmConnections connections(loop, log, client, clusters, wiring, [] { ... });
//   connections.start();   // before the caches are fed
#pragma once

#include <functional>
#include <memory>

#include "core/log.hpp"
#include "core/loop.hpp"
#include "kube/client/client.hpp"
#include "slinky/wiring.hpp"
#include "slurm/snapshot/registry.hpp"

namespace slinky {

class SlurmConnections {
 public:
  /// In namespaces outside the wiring's scope no key is read and no connection is made. Each change of Slurm's state is passed
  /// to the wiring. `heard` is called after every poll, even without a change, because gates may have opened.
  SlurmConnections(core::Loop& loop, core::Logger& log, kube::Client& client, slurm::Clusters& clusters, Wiring& wiring,
                   std::function<void()> heard);
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
