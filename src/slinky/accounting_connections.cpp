#include "slinky/accounting_connections.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "api/accounting.hpp"
#include "slinky/config_map.hpp"
#include "slinky/names.hpp"

namespace slinky {

struct AccountingConnections::Impl : std::enable_shared_from_this<AccountingConnections::Impl> {
  Impl(core::Loop& l, slurm::Clusters& s, Wiring& w, std::function<void()> h)
      : loop(l),
        clusters(s),
        wiring(w),
        accountings(w.cache(caches::kAccountings)),
        controllers(w.cache(caches::kControllers)),
        config_maps(w.cache(caches::kConfigMaps)),
        qos(w.cache(caches::kSlurmQos)),
        accounts(w.cache(caches::kSlurmAccounts)),
        users(w.cache(caches::kSlurmUsers)),
        associations(w.cache(caches::kSlurmAssociations)),
        heard(std::move(h)) {}
  ~Impl() { clusters.unlisten(listener); }

  core::Loop& loop;
  slurm::Clusters& clusters;
  Wiring& wiring;
  kube::Cache<kube::Object>&accountings, &controllers, &config_maps, &qos, &accounts, &users, &associations;
  std::function<void()> heard;
  slurm::Clusters::ListenerId listener = 0;
  std::map<slurm::AccountingKey, kube::Key> known;  ///< The databases that are polled, and their Accountings.
  std::set<kube::Key> dirty;                        ///< Accountings to examine in the next iteration of the loop.

  void start() {
    accountings.listen(
        [this](const kube::ObjectPtr& before, const kube::ObjectPtr& after) { mark((after ? after : before)->meta.key()); });
    for (kube::Cache<kube::Object>* cache : {&controllers, &qos}) {
      cache->listen([this](const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
        for (const kube::ObjectPtr& object : {before, after}) {
          if (object) mark(accounting_ref(*object));
        }
      });
    }
    // There can be thousands of accounts, users and associations. Here it only matters whether there are any.
    for (kube::Cache<kube::Object>* cache : {&accounts, &users, &associations}) {
      cache->listen([this](const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
        if (before && after && accounting_ref(*before) == accounting_ref(*after)) return;
        for (const kube::ObjectPtr& object : {before, after}) {
          if (object) mark(accounting_ref(*object));
        }
      });
    }
    // The configuration that slurmctld has loaded shows whether a cluster has joined.
    config_maps.listen([this](const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
      if (before && after && joined_slurmdbd(*before) == joined_slurmdbd(*after)) return;
      const kube::OwnerReference* owner = (after ? after : before)->meta.controller_owner();
      if (owner == nullptr || owner->kind != resources::kController.kind) return;
      if (const kube::ObjectPtr controller = controllers.find({(after ? after : before)->meta.ns, owner->name}))
        mark(accounting_ref(*controller));
    });
    listener = clusters.listen_to_lists([this](const slurm::ListChange& change) {
      const auto it = known.find(change.database);
      if (it != known.end()) wiring.list_changed(change, it->second);
      heard();
    });
  }

  void mark(const kube::Key& key) {
    if (key.name.empty()) return;
    if (dirty.empty()) {
      loop.after(core::Duration{0}, [weak = weak_from_this()] {
        const auto self = weak.lock();
        if (!self) return;
        for (const kube::Key& each : std::exchange(self->dirty, {})) self->look(each);
      });
    }
    dirty.insert(key);
  }

  void look(const kube::Key& key) {
    const slurm::AccountingKey database = accounting_key(key.ns, key.name);
    const std::vector<kube::ObjectPtr> resources = qos.by_index(kIndexAccounting, key.str());
    const bool entities = std::ranges::any_of(std::array{&accounts, &users, &associations}, [&](const auto* cache) {
      return !cache->by_index(kIndexAccounting, key.str()).empty();
    });
    const bool needed = entities || !resources.empty();
    const std::vector<slurm::ClusterKey> over = needed ? clusters_of(key) : std::vector<slurm::ClusterKey>{};
    const bool moved = over.empty() ? known.erase(database) > 0 : known.emplace(database, key).second;
    if (over.empty()) {
      clusters.remove_accounting(database);
    } else {
      using enum slurm::accounting::List;
      std::set<slurm::accounting::List> lists{kQos, kTres};
      // Changes of accounts and users need all lists. Deleting a QOS also needs the associations that may use it.
      if (entities) {
        lists = slurm::accounting::all_lists();
      } else if (std::ranges::any_of(resources, [](const kube::ObjectPtr& object) { return object->meta.terminating(); })) {
        lists.insert(kAssociations);
      }
      clusters.set_accounting(database, over, std::move(lists));
    }
    if (moved) wiring.list_changed({database, slurm::accounting::List::kQos, true}, key);
  }

  /// Returns the clusters whose slurmrestd sends requests to this database, the oldest first. If a cluster has not joined the
  /// database, its slurmrestd sends requests to no database or to another one. We cannot see whether an external slurmctld has
  /// joined, so the spec.accountingRef of its Controller decides.
  [[nodiscard]] std::vector<slurm::ClusterKey> clusters_of(const kube::Key& key) const {
    std::vector<slurm::ClusterKey> out;
    const kube::ObjectPtr object = accountings.find(key);
    if (!object || !wiring.acts_in(key.ns)) return out;
    const auto accounting = api::from_json<api::Accounting>(object->body);
    if (!accounting) return out;
    const std::string slurmdbd = accounting_endpoint(accounting->spec, key.ns, key.name).str();
    std::vector<kube::ObjectPtr> all = controllers.by_index(kIndexAccounting, key.str());
    std::ranges::sort(all, {}, [](const kube::ObjectPtr& each) { return std::pair(each->meta.created, each->meta.name); });
    for (const kube::ObjectPtr& controller : all) {
      const kube::ObjectPtr config_map = config_maps.find({key.ns, config_map_name(controller->meta.name)});
      const bool joined = config_map && joined_slurmdbd(*config_map) == slurmdbd;
      if (joined || core::get_bool(controller->body, {"spec", "external"}))
        out.push_back(cluster_key(key.ns, controller->meta.name));
    }
    return out;
  }
};

AccountingConnections::AccountingConnections(core::Loop& loop, slurm::Clusters& clusters, Wiring& wiring,
                                             std::function<void()> heard)
    : impl_(std::make_shared<Impl>(loop, clusters, wiring, std::move(heard))) {}
AccountingConnections::~AccountingConnections() = default;
void AccountingConnections::start() {
  impl_->start();
}

}  // namespace slinky
