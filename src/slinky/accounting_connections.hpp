// Selects the accounting databases that are polled, and the clusters whose slurmrestds are asked. The databases are those of
// Accountings that a SlurmQos, SlurmAccount, SlurmUser or SlurmAssociation names. The clusters are those whose slurmctld has
// joined them. slurm::Clusters polls.
//
//   AccountingConnections connections(loop, clusters, wiring, [] { ... });
//   connections.start();   // before the caches are fed
//
// Folder src/slinky: what programs about our resources share: names, caches, wiring, rights, conditions, connections. Nothing
// of one program alone. Uses api, kube and slurm.
#pragma once

#include <functional>
#include <memory>

#include "core/loop.hpp"
#include "slinky/wiring.hpp"
#include "slurm/snapshot/registry.hpp"

namespace slinky {

class AccountingConnections {
 public:
  /// Polls nothing in namespaces outside the wiring's scope. Passes each change of a list to the wiring. Calls `heard` after
  /// every poll, even without a change, because gates may have opened.
  AccountingConnections(core::Loop& loop, slurm::Clusters& clusters, Wiring& wiring, std::function<void()> heard);
  ~AccountingConnections();
  AccountingConnections(const AccountingConnections&) = delete;
  AccountingConnections& operator=(const AccountingConnections&) = delete;

  /// Starts listening to the caches. Call it once.
  void start();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace slinky
