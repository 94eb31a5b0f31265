// Writes the pools of the store to the pool file, makes slurmctld load the file, and removes pools. Has one run::Key.
//
// The owner connects it like this:
//   FileTarget file(loop, store, host, path, [&](bool changed) { pools.looked(changed); passes.caches_changed(); });
//   PoolsController pools(loop, store, clusters, cluster, file, [&](const run::Key& key) { passes.wake({...}); },
//                         [&] { return facts.partitions; });
//   store.listen([&](const Changes& changes) { pools.changed(changes); });
//   clusters.listen([&](const slurm::Change& change) { pools.changed(change); passes.caches_changed(); });
//   pools.start();
//   file.look();
// The controller's plans wait on the cluster (Plan::waits_on) until slurmctld has loaded the file.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "core/loop.hpp"
#include "enlist/coordinator/pools_plan.hpp"
#include "enlist/coordinator/pools_target.hpp"
#include "enlist/store/store.hpp"
#include "run/controller.hpp"
#include "slurm/snapshot/registry.hpp"

namespace enlist {

class PoolsController final : public run::TypedController<PoolsObserved> {
 public:
  /// `wake` starts a pass for the key. `elsewhere` returns the names of the partitions of slurm.conf that are not in the pool
  /// file, as far as they are known.
  PoolsController(core::Loop& loop, Store& store, slurm::Clusters& clusters, slurm::ClusterKey cluster, const FileTarget& file,
                  std::function<void(const run::Key&)> wake, std::function<std::set<std::string>()> elsewhere);

  [[nodiscard]] std::string name() const override { return "pools"; }
  [[nodiscard]] std::string share(const run::Key&) const override { return cluster_; }

  void start();
  void changed(const Changes& changes);  ///< Call it after each change of the store.
  void changed(const slurm::Change& change);
  void looked(bool changed);  ///< Call it after each reading of the file (FileTarget's `on_look`).

 private:
  [[nodiscard]] std::shared_ptr<const PoolsObserved> observe_typed(const run::Key& key, run::Recorder& recorder,
                                                                   const run::Observation& context) override;
  void wake();

  core::Loop& loop_;
  Store& store_;
  slurm::Clusters& clusters_;
  slurm::ClusterKey cluster_;
  const FileTarget& file_;
  std::function<void(const run::Key&)> wake_;
  std::function<std::set<std::string>()> elsewhere_;
  std::string wanted_;   ///< The text of the pool file for the stored pools, as of their last change.
  std::string offered_;  ///< The offered hash in the stored state of the rollout, as of the last pass.
  std::optional<Edits> edits_;
};

}  // namespace enlist
