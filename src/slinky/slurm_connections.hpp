// Connections to the slurmrestds that serve clusters: plan_serving (slinky/serving.hpp) decides which, from what the caches
// show; here the key that signs our tokens is read live from its Secret, when a connection is made or fails, and both are given
// to slurm::Clusters. The key is held in memory only, by slurm::Clusters.
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
  /// Where the wiring does not act no key is read, and nobody is connected to. It is told every change of what Slurm says;
  /// `heard` is called after that, changed or not: gates may be open.
  SlurmConnections(core::Loop& loop, core::Logger& log, kube::Client& client, slurm::Clusters& clusters, Wiring& wiring,
                   std::function<void()> heard);
  ~SlurmConnections();
  SlurmConnections(const SlurmConnections&) = delete;
  SlurmConnections& operator=(const SlurmConnections&) = delete;

  /// Listens to the caches; once.
  void start();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace slinky
