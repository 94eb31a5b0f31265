// The declarations in a controller's constructor: the caches that the controller reads, the events that wake it, and the
// rights that it needs. The program's wiring, the chart's ClusterRole and the caches of unit tests follow from these
// declarations alone.
//
//   RestApiController::RestApiController(Wiring& wiring)
//       : restapis_(wiring.cache(caches::kRestApis)), deployments_(wiring.cache(caches::kDeployments)) {
//     wiring.run(*this);
//     wiring.reconciles(resources::kRestApi);
//     wiring.makes(kube::resources::kDeployment);
//     wiring.wakes<kube::Object>(*this, restapis_, kube::self<kube::Object>());
//   }
//
// Declare everything before the first cache is fed.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kube/app/manager.hpp"
#include "kube/cache/recorder.hpp"
#include "slinky/caches.hpp"
#include "slinky/rights.hpp"
#include "slurm/snapshot/registry.hpp"

namespace slinky {

using Keys = std::vector<kube::Key>;

class Wiring {
 public:
  virtual ~Wiring() = default;

  /// Runs the controller, which must outlive the wiring's last callback.
  virtual void run(run::Controller& controller) = 0;

  /// Returns the cache of the declaration. Adds the right to read the resource of the cache.
  template <class Record>
  kube::Cache<Record>& cache(const CacheOf<Record>& wanted) {
    reads(wanted.resource);
    auto& out = static_cast<kube::Cache<Record>&>(find_or_make(&wanted));
    if (!indexed_.insert(&out).second) return out;
    for (const auto& [name, function] : wanted.indices) out.add_index(std::string(name), function);
    return out;
  }

  /// Wakes the controller's keys that `map` returns for a changed record. Calls `map` with the old and with the new record.
  /// `filter`, if given, selects the changes that count. Added and deleted records always count.
  template <class Record>
  void wakes(const run::Controller& who, kube::Cache<Record>& source, kube::Mapper<Record> map,
             kube::Filter<Record> filter = {}) {
    kube::listen<Record>(source, std::move(map), std::move(filter),
                         [this, name = who.name()](const kube::Key& key) { wake_here(name, key); });
  }

  /// Returns the keys that a change of Slurm concerns. `of` is the Controller of the cluster. The name in `of` is "" if the
  /// cluster has no Controller: the program then knows the address of a slurmrestd (slinky/slurm_connections.hpp).
  using SlurmMapper = std::function<Keys(const slurm::Change& change, const kube::Key& of)>;
  /// Wakes the controller's keys that `map` returns after each poll of Slurm.
  void wakes_on_slurm(std::string controller, SlurmMapper map);
  /// Called after each poll of Slurm: wakes the keys that the change concerns.
  void slurm_changed(const slurm::Change& change, const kube::Key& of);

  /// Returns the keys that a change of a list concerns. `of` is the Accounting of the database.
  using ListMapper = std::function<Keys(const slurm::ListChange& change, const kube::Key& of)>;
  /// Wakes the keys that `map` returns when a list of an accounting database has changed: its rows, its health or its error.
  void wakes_on_lists(std::string controller, ListMapper map);
  /// Called after each poll of a list: wakes the keys that the change concerns.
  void list_changed(const slurm::ListChange& change, const kube::Key& of);

  /// Returns the last snapshot of a cluster, or null if no slurmrestd is known for the cluster.
  [[nodiscard]] virtual slurm::SnapshotPtr snapshot(const slurm::ClusterKey& cluster) const = 0;
  /// Returns the lists of an accounting database, or nullopt if no slurmrestd is known for the database.
  [[nodiscard]] virtual std::optional<slurm::accounting::View> accounting(const slurm::AccountingKey& database) const = 0;
  /// Reports whether the program acts in a namespace.
  [[nodiscard]] virtual bool acts_in(std::string_view ns) const = 0;
  /// Returns false if the program has no right to read Kubernetes nodes. Then the cache of nodes never syncs, and all nodes are
  /// unknown.
  [[nodiscard]] virtual bool reads_nodes() const { return true; }

  // Rights. cache() adds the right to read its resource.
  /// Adds the rights for a custom resource that the controller reconciles: patch its finalizers and annotations, patch its
  /// status, and create children that block its deletion.
  void reconciles(const kube::Resource& resource);
  /// Adds the rights for child objects that the controller creates, including the right to delete them. The admission plugin
  /// OwnerReferencesPermissionEnforcement requires that right for a change of an object's owners. An apply to a child can
  /// change its owners if somebody else made or changed the child.
  void makes(const kube::Resource& resource);
  /// Adds the right to read a resource live or through the recorder.
  void reads(const kube::Resource& resource);
  Rights rights;

 private:
  /// Returns the cache of the declaration. The records have the type that the declaration names.
  virtual kube::CacheBase& find_or_make(const AnyCacheOf& wanted) = 0;
  virtual void wake(std::string_view controller, const kube::Key& key) = 0;
  /// Wakes the key if it is cluster-scoped, or if the program acts in its namespace.
  void wake_here(std::string_view controller, const kube::Key& key);

  std::set<const kube::CacheBase*> indexed_;
  struct SlurmWatch {
    std::string controller;
    SlurmMapper map;
  };
  std::vector<SlurmWatch> slurm_watches_;
  struct ListWatch {
    std::string controller;
    ListMapper map;
  };
  std::vector<ListWatch> list_watches_;
};

/// Returns the keys of the objects.
[[nodiscard]] Keys keys_of(const std::vector<kube::ObjectPtr>& objects);

/// The wiring of a program whose controllers run in a kube::Manager.
class ManagerWiring final : public Wiring {
 public:
  /// Acts only in `namespaces`, or in all namespaces if that list is empty. If the list has exactly one namespace, reads
  /// nothing outside of this namespace, except Kubernetes nodes if `nodes` is true.
  ManagerWiring(kube::Manager& manager, slurm::Clusters& clusters, std::vector<std::string> namespaces, bool nodes = true);

  void run(run::Controller& controller) override { manager_.add(controller); }
  [[nodiscard]] slurm::SnapshotPtr snapshot(const slurm::ClusterKey& cluster) const override {
    return clusters_.snapshot(cluster);
  }
  [[nodiscard]] std::optional<slurm::accounting::View> accounting(const slurm::AccountingKey& database) const override;
  [[nodiscard]] bool acts_in(std::string_view ns) const override;
  [[nodiscard]] bool reads_nodes() const override { return nodes_; }

 private:
  kube::CacheBase& find_or_make(const AnyCacheOf& wanted) override;
  void wake(std::string_view controller, const kube::Key& key) override { manager_.wake(controller, key); }

  kube::Manager& manager_;
  slurm::Clusters& clusters_;
  std::vector<std::string> namespaces_;
  bool nodes_;
  kube::Cache<kube::NodeRecord> no_nodes_;  ///< Replaces the manager's cache if the program may not read nodes. Always empty.
};

}  // namespace slinky
