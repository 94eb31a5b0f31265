// Runs controllers. The manager is wiring: it brings together caches and their watches, what wakes which key, the passes of
// keys (run/passes.hpp), where acts go, leader election (kube/app/leadership.hpp), events, and an orderly end
// (run/shutdown.hpp).
//
//   kube::Manager manager(loop, random, logger, client, options);
//   auto& nodesets = manager.cache<kube::Object>(resources::kNodeSet);
//   auto& pods = manager.cache<kube::PodRecord>(kube::resources::kPod, {.label_selector = "..."});
//   NodeSetController controller(nodesets, pods, ...);
//   manager.add(controller);
//   kube::listen<kube::Object>(nodesets, kube::self<kube::Object>(), {}, [&](const kube::Key& key) { manager.wake("nodeset",
//   key); }); manager.add_target(slurm_target); manager.start();
//   ... manager.stop([&] { loop.stop(); });
//
// Requires: what is given to it outlives it; caches, controllers and targets are added before start().
// Guarantees: a controller is called for one key at a time; passes begin only when all caches are synced and this process
// leads; no act is carried out after stop() has called back.
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
  core::Duration stop_grace{10000};  ///< For passes under way at stop().
  WatchOptions watch;
  EventOptions events;
  std::optional<LeaseOptions> election;  ///< Absent: lead at once.
  /// The lease was lost: the process must end now.
  std::function<void(std::string why)> on_lost;
  /// The same in every process: controllers keep hashes in annotations, to see a change also across their own restart. "":
  /// drawn from the random source.
  std::string secret_salt = "slurm-operator";
};

class Manager final : private CacheDirectory {
 public:
  Manager(core::Loop& loop, core::Random& random, core::Logger& logger, Client& client, ManagerOptions options = {});
  ~Manager() override;

  /// The cache of a resource under a scope, made on first use; one watch each. All before start().
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

  /// Adds a controller, which must outlive the manager. Its name must be its own.
  void add(run::Controller& controller);

  /// Another place where acts go (slurm::Target); kube acts go to the manager's own target.
  void add_target(plan::Target& target);

  /// Looks at a key again. For what no cache shows (a Slurm snapshot, a timer).
  void wake(std::string_view controller, const Key& key, core::Duration delay = core::Duration{0});
  /// A cache has changed, one of the manager's or one that it does not know (a Slurm snapshot): gates are looked at again.
  void caches_changed();

  /// Starts watches and the election; passes begin when all caches are synced and we lead.
  void start();
  /// In this order: no new passes, passes under way end, watches stop, events are sent, the lease is given up; then `done`.
  /// Passes that outlast stop_grace are not waited for, and the lease then runs out by itself.
  void stop(std::function<void()> done);

  [[nodiscard]] bool synced() const;  ///< All caches hold a complete list.
  [[nodiscard]] bool leading() const;
  /// Called when an election is won: what was read before may lack what the leader before us wrote last.
  void on_leading(std::function<void()> callback);
  /// Called for each system that a plan waits on (Plan::waits_on), each time that it is planned.
  void on_waiting(std::function<void(const std::string& system)> callback);
  [[nodiscard]] bool idle() const;  ///< No pass runs, no key is ready or held, none is to be retried.
  [[nodiscard]] const run::Passes& passes() const;
  /// Brings the gauges of the metrics up to date; before they are written out.
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

/// Which keys a change of a record concerns. Asked of the old and of the new record of each change.
template <class Record>
using Mapper = std::function<std::vector<Key>(const Record&)>;
/// True when a change matters.
template <class Record>
using Filter = std::function<bool(const Record& before, const Record& after)>;
/// Calls `wake` for each key that a change in the cache concerns; with a filter, only for changes that it lets through.
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

/// Maps a record to its own key.
template <class Record>
Mapper<Record> self() {
  return [](const Record& record) { return std::vector<Key>{record.meta.key()}; };
}
/// Maps a record to its controller owner, if that is of this kind. Whether it is the very owner is told by uid in `observe`.
template <class Record>
Mapper<Record> controller_owner(std::string kind) {
  return [kind = std::move(kind)](const Record& record) -> std::vector<Key> {
    const OwnerReference* owner = record.meta.controller_owner();
    if (owner == nullptr || owner->kind != kind) return {};
    return {Key{record.meta.ns, owner->name}};
  };
}

}  // namespace kube
