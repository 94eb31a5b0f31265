// Which slurmrestd serves which cluster: kept from Controllers, RestApis and their pods, and fed to slurm::Clusters.
//
// A cluster is served by its oldest ready RestApi, else by the one that served it before, else by the oldest. The key that
// signs our tokens is read live from its Secret when a connection is made or fails, and is held in memory only, by
// slurm::Clusters.
//
// What Slurm says wakes keys: the Controller's when partitions or health change, those NodeSets whose nodes changed (all of the
// cluster's when its health did).
//
//   SlurmConnections connections(loop, log, client, clusters, caches, {wake, moved, acts_in});
//   connections.start();   // after the caches' indices are added, before they are fed
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "cluster/caches.hpp"
#include "core/log.hpp"
#include "core/loop.hpp"
#include "kube/client.hpp"
#include "slurm/snapshot/registry.hpp"

namespace op {

class SlurmConnections {
 public:
  struct Hooks {
    /// Looks at a key again: "controller" or "nodeset".
    std::function<void(std::string_view controller, const kube::Key& key)> wake;
    /// A snapshot is in, changed or not: gates may be open.
    std::function<void()> moved;
    /// Whether the operator acts in a namespace: elsewhere no key is read, and nobody is connected to. Null: in all.
    std::function<bool(std::string_view ns)> acts_in;
  };

  SlurmConnections(core::Loop& loop, core::Logger& log, kube::Client& client, slurm::Clusters& clusters, const Caches& caches,
                   Hooks hooks);
  ~SlurmConnections();
  SlurmConnections(const SlurmConnections&) = delete;
  SlurmConnections& operator=(const SlurmConnections&) = delete;

  /// Listens to the caches; once.
  void start();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace op
