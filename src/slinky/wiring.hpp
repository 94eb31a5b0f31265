// What a controller declares of itself, in its constructor: the caches that it reads, what wakes it, and the rights that it
// needs. The program's wiring, the chart's ClusterRole and the caches of unit tests come from that alone.
//
//   RestApiController::RestApiController(Wiring& wiring)
//       : restapis_(wiring.cache(caches::kRestApis)), deployments_(wiring.cache(caches::kDeployments)) {
//     wiring.run(*this);
//     wiring.reconciles(resources::kRestApi);
//     wiring.makes(kube::resources::kDeployment);
//     wiring.wakes<kube::Object>(*this, restapis_, kube::self<kube::Object>());
//   }
//
// All before the first cache is fed.
#pragma once

#include <functional>
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

  /// Has the controller run. It must outlive the wiring's last callback.
  virtual void run(run::Controller& controller) = 0;

  /// The cache of that declaration, which may be read.
  template <class Record>
  kube::Cache<Record>& cache(const CacheOf<Record>& wanted) {
    reads(wanted.resource);
    kube::Cache<Record>& out = find_or_make(wanted);
    if (!indexed_.insert(&out).second) return out;
    for (const auto& [name, function] : wanted.indices) out.add_index(std::string(name), function);
    return out;
  }

  /// Looks at the keys again that a change of a record concerns: `map` is asked of the old and of the new record. With a
  /// filter, only of changes that it lets through.
  template <class Record>
  void wakes(const run::Controller& who, kube::Cache<Record>& source, kube::Mapper<Record> map,
             kube::Filter<Record> filter = {}) {
    kube::listen<Record>(source, std::move(map), std::move(filter),
                         [this, name = who.name()](const kube::Key& key) { wake_here(name, key); });
  }

  /// The same of what Slurm says: comes for every poll that ended.
  void wakes_on_slurm(std::string controller, std::function<Keys(const slurm::Change&)> map);
  /// For who listens to Slurm.
  void slurm_changed(const slurm::Change& change);

  /// What Slurm last said of a cluster; null when no server is known for it.
  [[nodiscard]] virtual slurm::SnapshotPtr snapshot(const slurm::ClusterKey& cluster) const = 0;
  /// Whether anything is to be done in a namespace.
  [[nodiscard]] virtual bool acts_in(std::string_view ns) const = 0;
  /// False: Kubernetes nodes may not be read. Their cache is never synced then, and nothing is known of any.
  [[nodiscard]] virtual bool reads_nodes() const { return true; }

  // Rights. A cache brings those to read it.
  /// A custom resource whose spec is acted on: its finalizers and annotations by patch, its status, and children that block
  /// its deletion.
  void reconciles(const kube::Resource& resource);
  /// Children. Their deletion too: OwnerReferencesPermissionEnforcement, where it is on, lets nobody else change an object's
  /// owners, and applying to a child that somebody made, or changed, does.
  void makes(const kube::Resource& resource);
  /// What is read live, or through the recorder.
  void reads(const kube::Resource& resource);
  Rights rights;

 private:
  virtual kube::Cache<kube::Object>& find_or_make(const CacheOf<kube::Object>& wanted) = 0;
  virtual kube::Cache<kube::PodRecord>& find_or_make(const CacheOf<kube::PodRecord>& wanted) = 0;
  virtual kube::Cache<kube::SecretRecord>& find_or_make(const CacheOf<kube::SecretRecord>& wanted) = 0;
  virtual kube::Cache<kube::NodeRecord>& find_or_make(const CacheOf<kube::NodeRecord>& wanted) = 0;
  virtual void wake(std::string_view controller, const kube::Key& key) = 0;
  /// Wakes the controller, unless the key is in a namespace in which nothing is to be done.
  void wake_here(std::string_view controller, const kube::Key& key);

  std::set<const kube::CacheBase*> indexed_;
  struct SlurmWatch {
    std::string controller;
    std::function<Keys(const slurm::Change&)> map;
  };
  std::vector<SlurmWatch> slurm_watches_;
};

/// Keys of objects, for a map.
[[nodiscard]] Keys keys_of(const std::vector<kube::ObjectPtr>& objects);

/// The wiring of a program whose controllers a manager runs.
class ManagerWiring final : public Wiring {
 public:
  /// `namespaces`: acts only on these; empty: on all. With exactly one, nothing outside of it is read but Kubernetes nodes, and
  /// they only with `nodes`.
  ManagerWiring(kube::Manager& manager, slurm::Clusters& clusters, std::vector<std::string> namespaces, bool nodes = true);

  void run(run::Controller& controller) override { manager_.add(controller); }
  [[nodiscard]] slurm::SnapshotPtr snapshot(const slurm::ClusterKey& cluster) const override {
    return clusters_.snapshot(cluster);
  }
  [[nodiscard]] bool acts_in(std::string_view ns) const override;
  [[nodiscard]] bool reads_nodes() const override { return nodes_; }

 private:
  template <class Record>
  kube::Cache<Record>& of_manager(const CacheOf<Record>& wanted);
  kube::Cache<kube::Object>& find_or_make(const CacheOf<kube::Object>& wanted) override;
  kube::Cache<kube::PodRecord>& find_or_make(const CacheOf<kube::PodRecord>& wanted) override;
  kube::Cache<kube::SecretRecord>& find_or_make(const CacheOf<kube::SecretRecord>& wanted) override;
  kube::Cache<kube::NodeRecord>& find_or_make(const CacheOf<kube::NodeRecord>& wanted) override;
  void wake(std::string_view controller, const kube::Key& key) override { manager_.wake(controller, key); }

  kube::Manager& manager_;
  slurm::Clusters& clusters_;
  std::vector<std::string> namespaces_;
  bool nodes_;
  kube::Cache<kube::NodeRecord> no_nodes_;  ///< In the stead of the manager's: nothing feeds it.
};

}  // namespace slinky
