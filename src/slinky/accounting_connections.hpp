// Selects the accounting databases to poll, and the clusters whose slurmrestds answer the polls. A database is polled if a
// SlurmQos, SlurmAccount, SlurmUser or SlurmAssociation names its Accounting. The clusters of a database are those whose
// slurmctld uses the database. slurm::Clusters sends the polls.
//
//   AccountingConnections connections(loop, clusters, wiring, [] { ... });
//   connections.start();   // before the caches are fed
//
// Folder src/slinky: the code that programs about our resources share: names, caches, wiring, rights, conditions, connections.
// Contains nothing that only one program needs. Uses api, kube and slurm.
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
  /// every poll, even if nothing has changed, because the poll can open gates that hold back plans.
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
