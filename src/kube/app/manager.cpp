#include "kube/app/manager.hpp"

#include <algorithm>

#include "kube/app/leadership.hpp"
#include "kube/cache/named_watches.hpp"
#include "run/shutdown.hpp"

namespace kube {

namespace {

constexpr core::Duration kEventGrace{2000};

}  // namespace

struct Manager::Impl {
  Impl(Manager& m, core::Loop& l, core::Random& r, core::Logger& g, Client& c, ManagerOptions o)
      : manager(m),
        loop(l),
        logger(g),
        client(c),
        options(std::move(o)),
        maker(l, r, g, c, options.watch, options.secret_salt.empty() ? r.bytes(16) : options.secret_salt),
        named(
            maker, [this](const run::WorkKey& key) { passes.wake(key); }, [this] { manager.caches_changed(); }),
        events(l, r, g, c, options.events),
        target(l, r, g, c, m, events),
        executor(l, router, options.limits),
        passes(l, r, g, executor, options,
               {.may_begin = [this] { return started && leadership.leads() && synced(); },
                .on_first = [this](std::size_t keys) { log_first(keys); },
                .on_ended = [this] { shutdown.pass_ended(); },
                .on_waiting =
                    [this](const std::string& system) {
                      if (on_waiting) on_waiting(system);
                    },
                .recorder = [this](const run::WorkKey& key) { return std::make_unique<NamedWatches::Reading>(named, key); }},
               options.metrics),
        leadership(l, r, g, c, options.election, options.metrics,
                   {.on_leading = [this] { begin_leading(); }, .on_lost = [this](const std::string& why) { lost(why); }}),
        shutdown(l, g, options.stop_grace,
                 {.passes = [this] { return passes.under_way(); },
                  .stop_watches = [this] { stop_watches(); },
                  .send_events = [this](std::function<void()> done) { events.stop(kEventGrace, std::move(done)); },
                  .give_up_lease = [this](std::function<void()> done) { give_up_lease(std::move(done)); }}) {
    router.add(target);
    target.on_settled([this] { manager.caches_changed(); });
  }

  Manager& manager;
  core::Loop& loop;
  core::Logger& logger;
  Client& client;
  ManagerOptions options;
  CacheMaker maker;
  std::vector<std::unique_ptr<CacheEntry>> entries;
  NamedWatches named;
  EventRecorder events;
  plan::Router router;
  Target target;
  plan::Executor executor;
  run::Passes passes;
  Leadership leadership;
  run::Shutdown shutdown;
  std::function<void()> on_leading;
  std::function<void(const std::string&)> on_waiting;
  std::function<void()> on_collect;
  bool started = false;
  bool change_planned = false;
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);

  [[nodiscard]] bool synced() const {
    return std::ranges::all_of(entries, [](const auto& entry) { return entry->synced(); });
  }

  void log_first(std::size_t keys) { logger.info("caches synced: passes begin", {{"caches", entries.size()}, {"keys", keys}}); }

  /// Reports changed caches to named watches and passes. One report in each loop iteration covers all changes.
  void caches_changed_soon() {
    if (change_planned) return;
    change_planned = true;
    loop.after(core::Duration{0}, [this, weak = std::weak_ptr<bool>(alive)] {
      if (weak.expired()) return;
      change_planned = false;
      named.caches_changed();
      passes.caches_changed();
    });
  }

  void begin_leading() {
    // A standby's caches may lag behind the last writes of the previous leader. Act only on data that were read after these
    // writes.
    if (leadership.elected()) {
      for (const auto& entry : entries) entry->renew();
      if (on_leading) on_leading();
    }
    passes.pump_soon();
  }

  void lost(const std::string& why) {
    passes.halt();
    shutdown.lease_lost();
    logger.error("the lease was lost", {{"why", why}});
    if (options.on_lost) options.on_lost(why);
  }

  void stop_watches() {
    for (const auto& entry : entries) entry->watch->stop();
    named.stop();
  }

  void give_up_lease(std::function<void()> done) {
    const bool writes = passes.may_still_write();
    if (writes && leadership.elected()) {
      logger.warn("the lease is not released, and expires by itself, because writes may be under way",
                  {{"passes", passes.under_way()}});
    }
    leadership.give_up(writes, std::move(done));
  }
};

Manager::Manager(core::Loop& loop, core::Random& random, core::Logger& logger, Client& client, ManagerOptions options)
    : impl_(std::make_unique<Impl>(*this, loop, random, logger, client, std::move(options))) {}

Manager::~Manager() = default;

CacheBase* Manager::find_cache(const Resource& resource, const Scope& scope, std::type_index record) {
  for (const auto& entry : impl_->entries) {
    if (entry->resource == resource && entry->scope == scope && entry->record == record) return entry->cache.get();
  }
  return nullptr;
}

void Manager::add_cache(const Resource& resource, const Scope& scope, std::type_index record, std::unique_ptr<CacheBase> cache,
                        std::unique_ptr<WatchSink> sink) {
  auto entry = impl_->maker.make(resource, scope, record, std::move(cache), std::move(sink));
  if (impl_->started) entry->watch->start();
  // Entries are sorted by place, so that the order of the calls does not matter.
  const auto by_place = [](const std::unique_ptr<CacheEntry>& one) { return place(one->resource, one->scope); };
  const auto at = std::ranges::upper_bound(impl_->entries, by_place(entry), {}, by_place);
  impl_->entries.insert(at, std::move(entry));
}

void Manager::add(run::Controller& controller) {
  impl_->passes.add(controller);
}

void Manager::add_target(plan::Target& target) {
  impl_->router.add(target);
}

void Manager::wake(std::string_view controller, const Key& key, core::Duration delay) {
  impl_->passes.wake({impl_->passes.id_of(controller), key}, delay);
}

void Manager::caches_changed() {
  impl_->caches_changed_soon();
}

void Manager::start() {
  impl_->started = true;
  for (const auto& entry : impl_->entries) entry->watch->start();
  impl_->leadership.start();
}

void Manager::on_leading(std::function<void()> callback) {
  impl_->on_leading = std::move(callback);
}

void Manager::on_waiting(std::function<void(const std::string&)> callback) {
  impl_->on_waiting = std::move(callback);
}

void Manager::stop(std::function<void()> done) {
  if (!impl_->shutdown.begun()) impl_->passes.stop();
  impl_->shutdown.begin(std::move(done));
}

bool Manager::synced() const {
  return impl_->synced();
}
bool Manager::leading() const {
  return impl_->leadership.leads();
}
bool Manager::idle() const {
  return impl_->passes.idle() && !impl_->change_planned;
}
const run::Passes& Manager::passes() const {
  return impl_->passes;
}

Metrics* Manager::metrics() const {
  return impl_->options.metrics;
}
void Manager::on_collect(std::function<void()> callback) {
  impl_->on_collect = std::move(callback);
}

void Manager::collect() const {
  Metrics* metrics = impl_->options.metrics;
  if (metrics == nullptr) return;
  if (impl_->on_collect) impl_->on_collect();
  impl_->passes.collect();
  for (const auto& entry : impl_->entries) {
    const std::string name = entry->resource.plural + (entry->resource.group.empty() ? "" : "." + entry->resource.group);
    metrics->cache(name, entry->cache->size(), entry->cache->resource_version());
    metrics->watch_failures(name, entry->watch->stats().failures);
  }
  metrics->events_dropped(impl_->events.dropped());
}

Client& Manager::client() {
  return impl_->client;
}
const ParseContext& Manager::parse_context() const {
  return impl_->maker.context();
}

std::vector<CacheView> Manager::caches(const Resource& resource) const {
  std::vector<CacheView> views;
  const auto add_view = [&](const CacheEntry& entry) {
    if (entry.resource.plural != resource.plural || entry.resource.group != resource.group) return;
    views.push_back({entry.cache.get(), entry.scope, [watch = entry.watch.get()] { watch->relist(); }});
  };
  for (const auto& entry : impl_->entries) add_view(*entry);
  impl_->named.each(add_view);
  return views;
}

}  // namespace kube
