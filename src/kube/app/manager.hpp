// Runs controllers. The manager connects caches and their watches, events that wake keys, the passes of keys (run/passes.hpp),
// the targets of acts, leader election (kube/app/leadership.hpp), the writing of events, and the orderly end of the process
// (run/shutdown.hpp).
//
//   kube::Manager manager(loop, random, logger, client, options);
//   auto& nodesets = manager.cache<kube::Object>(resources::kNodeSet);
//   auto& pods = manager.cache<kube::PodRecord>(kube::resources::kPod, {.label_selector = "..."});
//   NodeSetController controller(nodesets, pods, ...);
//   manager.add(controller);
//   kube::listen<kube::Object>(nodesets, kube::self<kube::Object>(), {},
//                              [&](const kube::Key& key) { manager.wake("nodeset", key); });
//   manager.add_target(slurm_target);
//   manager.start();
//   ...
//   manager.stop([&] { loop.stop(); });
//
// Requires: the loop, the client and the other constructor arguments outlive the manager; controllers and targets live until
// stop() has called `done` and no plan of theirs is under way; caches, controllers and targets are added before start().
// Guarantees: a controller is called for one key at a time; passes begin only when all caches are synced and this process
// leads; no act is executed after stop() has called `done`.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <typeindex>
#include <vector>

#include "core/log.hpp"
#include "core/loop.hpp"
#include "core/random.hpp"
#include "kube/act/events.hpp"
#include "kube/act/target.hpp"
#include "kube/app/lease.hpp"
#include "kube/app/metrics.hpp"
#include "kube/cache/cache.hpp"
#include "kube/cache/record.hpp"
#include "kube/cache/recorder.hpp"
#include "kube/cache/watch.hpp"
#include "kube/client/client.hpp"
#include "plan/executor.hpp"
#include "run/passes.hpp"

namespace kube {

struct ManagerOptions : run::PassOptions {
  plan::PassLimits limits;
  Metrics* metrics = nullptr;
  core::Duration stop_grace{10000};  ///< How long stop() waits for passes under way.
  WatchOptions watch;
  EventOptions events;
  std::optional<LeaseOptions> election;  ///< The Lease of the election; nullopt: this process leads at once.
  /// Called when the lease is lost: the process must end now.
  std::function<void(std::string why)> on_lost;
  /// Salts the hashes of Secret values. The salt must be equal in every process, because controllers store hashes in
  /// annotations and compare them after a restart. "": a random salt.
  std::string secret_salt = "slurm-operator";
};

class Manager final : private CacheDirectory {
 public:
  Manager(core::Loop& loop, core::Random& random, core::Logger& logger, Client& client, ManagerOptions options = {});
  ~Manager() override;

  /// Returns the cache of a resource under a scope. Creates the cache and its watch on first use. Call it only before start().
  template <class Record>
  Cache<Record>& cache(const Resource& resource, const Scope& scope = {}) {
    if (CacheBase* known = find_cache(resource, scope, typeid(Record))) return static_cast<Cache<Record>&>(*known);
    auto made = std::make_unique<Cache<Record>>();
    Cache<Record>& result = *made;
    auto sink = std::make_unique<CacheSink<Record>>(result, parse_context());
    result.listen_changed([this] { caches_changed(); });
    add_cache(resource, scope, typeid(Record), std::move(made), std::move(sink));
    return result;
  }

  /// Adds a controller, which must live until its last pass has ended. Its name must be unique.
  void add(run::Controller& controller);

  /// Adds a target for acts on other systems (slurm::Target). The manager has its own target for acts on Kubernetes.
  void add_target(plan::Target& target);

  /// Processes a key of the controller after at most `delay`. Call it for causes that no cache shows, such as a new Slurm
  /// snapshot or a timer.
  void wake(std::string_view controller, const Key& key, core::Duration delay = core::Duration{0});
  /// Checks the gates again. Call it after a change outside the manager's caches, such as a new Slurm snapshot.
  void caches_changed();

  /// Starts the watches and the election. Passes begin when all caches are synced and this process leads.
  void start();
  /// Stops in this order: no new passes begin, passes under way end, watches stop, events are sent, the lease is released,
  /// `done` is called. Does not wait for passes that take longer than stop_grace; the lease then expires instead.
  void stop(std::function<void()> done);

  [[nodiscard]] bool synced() const;  ///< All caches hold a complete list.
  [[nodiscard]] bool leading() const;
  /// Sets a callback for a won election. Data from an earlier read might lack the last writes of the previous leader.
  void on_leading(std::function<void()> callback);
  /// Sets a callback that is called for each plan, once for each system that the plan waits on (Plan::waits_on).
  void on_waiting(std::function<void(const std::string& system)> callback);
  [[nodiscard]] bool idle() const;  ///< No pass runs, and no key is ready, held or due for a retry.
  [[nodiscard]] const run::Passes& passes() const;
  /// Returns ManagerOptions::metrics.
  [[nodiscard]] Metrics* metrics() const;
  /// Sets a callback that collect() calls.
  void on_collect(std::function<void()> callback);
  /// Updates the gauges of the metrics, before they are exported.
  void collect() const;
  [[nodiscard]] Client& client();

 private:
  struct Impl;
  CacheBase* find_cache(const Resource& resource, const Scope& scope, std::type_index record);
  void add_cache(const Resource& resource, const Scope& scope, std::type_index record, std::unique_ptr<CacheBase> cache,
                 std::unique_ptr<WatchSink> sink);
  [[nodiscard]] const ParseContext& parse_context() const;
  [[nodiscard]] std::vector<CacheView> caches(const Resource& resource) const override;

  std::unique_ptr<Impl> impl_;
};

/// Returns the keys that the change of a record concerns. listen() calls it with the old and with the new record.
template <class Record>
using Mapper = std::function<std::vector<Key>(const Record&)>;
/// Returns true if the change of a record matters.
template <class Record>
using Filter = std::function<bool(const Record& before, const Record& after)>;
/// Calls `wake` for each key that a change in the cache concerns. If a record exists before and after a change, a filter
/// decides whether the change counts. Added and deleted records always count.
template <class Record>
void listen(Cache<Record>& source, Mapper<Record> map, Filter<Record> filter, std::function<void(const Key&)> wake) {
  source.listen(
      [map = std::move(map), filter = std::move(filter), wake = std::move(wake)](const auto& before, const auto& after) {
        if (before && after && filter && !filter(*before, *after)) return;
        const auto wake_all = [&](const Record& record) {
          for (const Key& key : map(record)) wake(key);
        };
        if (before) wake_all(*before);
        if (after) wake_all(*after);
      });
}

/// Returns a Mapper from a record to its own key.
template <class Record>
Mapper<Record> self() {
  return [](const Record& record) { return std::vector<Key>{record.meta.key()}; };
}
/// Returns a Mapper from a record to the key of its controller owner, if the owner is of this kind. `observe` must compare the
/// uid.
template <class Record>
Mapper<Record> controller_owner(std::string kind) {
  return [kind = std::move(kind)](const Record& record) -> std::vector<Key> {
    const OwnerReference* owner = record.meta.controller_owner();
    if (owner == nullptr || owner->kind != kind) return {};
    return {Key{record.meta.ns, owner->name}};
  };
}

}  // namespace kube
