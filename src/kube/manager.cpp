#include "kube/manager.hpp"

#include <algorithm>
#include <atomic>
#include <map>

#include "core/hash.hpp"
#include "kube/metrics.hpp"
#include "kube/named_watches.hpp"
#include "kube/repeats.hpp"
#include "plan/ledger.hpp"

namespace kube {

namespace {

constexpr core::Duration kUnobservedRetry{5000};  ///< A key that could not observe, when nothing else wakes it.
constexpr core::Duration kGateTick{1000};         ///< How often closed gates are looked at when nothing moves.
constexpr core::Duration kEventGrace{2000};
constexpr int kMaxNeedRounds = 8;
constexpr int kInitialPriority = -100;  ///< Of keys that the first lists bring.
/// After a pass that found nothing to do its key rests this many times as long as it took to observe and plan.
constexpr int kPaceFactor = 3;
constexpr core::Duration kPaceCap{200};

/// One pass of a key, from pop to the last gate.
struct Pass {
  WorkKey key;
  std::string controller;
  std::string id;  ///< In all its log lines: "reconcileID", as controller-runtime has it.
  core::MonoTime began;
  core::MonoTime observed_at;
  std::string share;  ///< Controller::share.
  /// Since when a thread has been planning it, in milliseconds of MonoTime; 0: none does. That thread writes it.
  std::shared_ptr<std::atomic<core::Duration::rep>> planned_since = std::make_shared<std::atomic<core::Duration::rep>>(0);
  core::Duration planning{0};  ///< How long observing and planning took, the last time.
  plan::Facts facts;
  int rounds = 0;
  std::shared_ptr<const void> observed;
  plan::Plan plan;
  bool failed = false;  ///< Planning itself went wrong.
  std::vector<plan::GatePtr> gates;
  core::MonoTime gated_since;
  core::MonoTime settle_at;
  bool settled_live = false;
  plan::PassResult result;
  std::size_t withheld = 0;                      ///< Steps that were not begun: see Repeats.
  std::optional<core::MonoTime> withheld_until;  ///< When the first of them may be done.
};
using PassPtr = std::shared_ptr<Pass>;

}  // namespace

struct Manager::Impl {
  Impl(Manager& m, core::Loop& l, core::Random& r, core::Logger& g, Client& c, ManagerOptions o)
      : manager(m),
        loop(l),
        random(r),
        logger(g),
        client(c),
        options(std::move(o)),
        maker(l, r, g, c, options.watch, options.secret_salt.empty() ? r.bytes(16) : options.secret_salt),
        named(
            maker, [this](const WorkKey& key) { add(key, core::Duration{0}); }, [this] { manager.moved(); }),
        queue(r, options.queue),
        events(l, r, g, c, options.events),
        target(l, r, g, c, m, events),
        executor(l, router, options.limits),
        due(l),
        gate_tick(l),
        repeats_tick(l),
        stop_timer(l) {
    process_id = core::hex(random.bytes(4));
    router.add(target);
    target.on_settled([this] { manager.moved(); });
  }

  Manager& manager;
  core::Loop& loop;
  core::Random& random;
  core::Logger& logger;
  Client& client;
  ManagerOptions options;
  std::string process_id;    ///< Tells the passes of this process from those of others.
  std::uint64_t passes = 0;  ///< Begun so far.
  CacheMaker maker;
  std::vector<std::unique_ptr<CacheEntry>> entries;
  NamedWatches named;

  struct ControllerEntry {
    Controller* controller = nullptr;
    std::string name;
  };
  std::vector<ControllerEntry> controllers;
  std::map<std::string, std::uint32_t, std::less<>> controller_ids;

  WorkQueue queue;
  EventRecorder events;
  plan::Router router;
  Target target;
  plan::Executor executor;
  std::unique_ptr<LeaderElection> election;

  core::Timer due;
  core::Timer gate_tick;
  core::Timer repeats_tick;
  core::Timer stop_timer;
  bool pump_planned = false;
  bool moved_planned = false;
  bool started = false;
  bool leads = false;
  bool ready_logged = false;
  bool stopping = false;
  bool stopped = false;
  bool unsettled = false;  ///< A write of a pass that has ended may still be carried out.
  std::function<void()> stop_done;

  std::map<WorkKey, PassPtr> running;  ///< Observing, planning, acting.
  std::map<WorkKey, PassPtr> gated;    ///< Held by a gate.
  std::set<WorkKey> unobserved;        ///< Tried again when something moves.
  std::map<WorkKey, plan::Ledger> ledgers;
  std::map<WorkKey, Repeats> repeats;
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);

  [[nodiscard]] core::MonoTime now() const { return loop.clock().mono(); }

  template <class Call>
  core::Callback guarded(Call call) {
    return [weak = std::weak_ptr<bool>(alive), call = std::move(call)]() mutable {
      if (!weak.expired()) call();
    };
  }

  [[nodiscard]] bool all_synced() const {
    return std::ranges::all_of(entries, [](const auto& entry) { return entry->synced(); });
  }

  [[nodiscard]] bool may_work() const { return started && !stopping && leads && all_synced(); }

  // Waking.

  void add(const WorkKey& key, core::Duration delay) {
    if (stopping) return;
    const int priority = ready_logged ? 0 : kInitialPriority;
    queue.add_after(key, delay, now(), priority);
    plan_pump();
  }

  void plan_pump() {
    if (pump_planned) return;
    pump_planned = true;
    loop.after(core::Duration{0}, guarded([this] {
                 pump_planned = false;
                 pump();
               }));
  }

  void pump() {
    if (!may_work()) return;
    if (!ready_logged) {
      ready_logged = true;
      logger.info("caches synced: passes begin", {{"caches", entries.size()}, {"keys", queue.depth()}});
    }
    while (running.size() < options.max_in_flight) {
      const auto key = queue.pop(now(), [this](const WorkKey& ready) { return has_room(ready); });
      if (!key) break;
      begin(*key);
    }
    if (const auto at = queue.next_due()) {
      due.set(std::max(*at - now(), core::Duration{0}), [this] { pump(); });
    } else {
      due.cancel();
    }
  }

  /// One more pass of its share may run.
  [[nodiscard]] bool has_room(const WorkKey& key) const {
    const std::size_t all = options.max_in_flight;
    const std::size_t most = std::max<std::size_t>(running.size() < all / 2 ? all / 4 : all / 16, 1);
    if (running.size() < most) return true;
    const std::string share = controllers[key.controller].controller->share(key.key);
    const auto count = std::ranges::count_if(running, [&](const auto& entry) { return entry.second->share == share; });
    return share.empty() || static_cast<std::size_t>(count) < most;
  }

  /// Something moved, once per turn of the loop however much did.
  void on_moved() {
    named.on_moved();
    for (const WorkKey& key : unobserved) add(key, core::Duration{0});
    unobserved.clear();
    check_gates();
    plan_pump();
  }

  // A pass.

  void begin(const WorkKey& key) {
    auto pass = std::make_shared<Pass>();
    pass->key = key;
    pass->controller = controllers[key.controller].name;
    pass->id = process_id + "-" + std::to_string(++passes);
    pass->began = now();
    pass->share = controllers[key.controller].controller->share(key.key);
    running[key] = pass;
    if (options.metrics != nullptr) {
      options.metrics->queue_popped(pass->controller, queue.last_wait());
      options.metrics->pass_started(pass->controller);
    }
    observe(pass);
  }

  void observe(const PassPtr& pass);

  void plan_off_loop(const PassPtr& pass) {
    Controller* controller = controllers[pass->key.controller].controller;
    auto made = std::make_shared<std::pair<plan::Plan, std::string>>();
    loop.offload(
        [controller, observed = pass->observed, made, since = pass->planned_since, clock = &loop.clock()] {
          *since = clock->mono().since_start.count();
          // A plan that throws is a bug of that controller. It must not take the others down, nor be mistaken for an empty
          // plan.
          try {
            made->first = controller->plan(observed.get());
          } catch (const std::exception& error) {
            made->second = describe(error);
          } catch (...) {
            made->second = "exception";
          }
          *since = 0;
        },
        guarded([this, pass, made] {
          pass->observed.reset();
          pass->planning = now() - pass->observed_at;
          planned(pass, std::move(made->first), made->second);
        }));
  }

  static std::string describe(const std::exception& error) {
    const std::string what = error.what();
    return what.empty() ? "exception" : what;
  }

  /// The controller threw.
  void broke(const PassPtr& pass, std::string_view message, const std::string& what) {
    logger.error(message, fields(*pass, {{"what", what}}));
    if (options.metrics != nullptr) options.metrics->pass_panicked(pass->controller);
    pass->failed = true;
    finish(pass);
  }

  void planned(const PassPtr& pass, plan::Plan made, const std::string& bug) {
    if (!bug.empty()) return broke(pass, "plan failed: this is a bug", bug);
    if (options.on_plan) options.on_plan(made);
    const std::vector<plan::Need> open = plan::open_needs(made, pass->facts);
    if (!open.empty() && !stopping) {
      if (++pass->rounds > kMaxNeedRounds) {
        logger.error("a plan asks for ever more facts: this is a bug", fields(*pass, {{"need", open.front().id}}));
        pass->failed = true;
        return finish(pass);
      }
      executor.fetch(open, [this, weak = std::weak_ptr<bool>(alive), pass](plan::Facts facts) {
        if (weak.expired()) return;
        for (auto& [id, fact] : facts) pass->facts.insert_or_assign(id, std::move(fact));
        observe(pass);
      });
      return;
    }
    pass->plan = std::move(made);
    act(pass);
  }

  void act(const PassPtr& pass) {
    drop_old_outcomes(*pass);
    if (pass->plan.step_count() == 0 || stopping) return finish(pass);
    if (options.dry_run) {
      logger.info("plan (not carried out)", fields(*pass, {{"plan", pass->plan.describe()}}));
      return finish(pass);
    }
    executor.run(
        pass->plan,
        [this, weak = std::weak_ptr<bool>(alive), pass](plan::PassResult result) {
          if (weak.expired()) return;
          acted(pass, std::move(result));
        },
        [&](const plan::Step& step) { return withhold(*pass, step); });
  }

  void drop_old_outcomes(const Pass& pass) {
    const auto it = ledgers.find(pass.key);
    if (it == ledgers.end()) return;
    it->second.keep(pass.plan);
    if (it->second.outcomes().empty()) ledgers.erase(it);
  }

  void acted(const PassPtr& pass, plan::PassResult result) {
    pass->result = std::move(result);
    if (!pass->result.outcomes.empty()) ledgers[pass->key].add(pass->result.outcomes);
    log_pass(*pass);
    count_repeats(*pass);
    pass->gates = std::move(pass->result.gates);
    std::erase_if(pass->gates, [](const plan::GatePtr& gate) { return gate == nullptr || gate->open(); });
    if (stopping) unsettled = unsettled || may_still_write(*pass);
    if (pass->gates.empty() || stopping) return finish(pass);
    pass->gated_since = now();
    pass->settle_at = now() + options.gate_cap;
    work_ended(*pass);
    gated[pass->key] = pass;
    tick_gates();
    plan_pump();
  }

  // Steps that are done again and again.

  [[nodiscard]] bool withhold(Pass& pass, const plan::Step& step) const {
    const auto known = repeats.find(pass.key);
    if (known == repeats.end()) return false;
    const auto until = known->second.withheld_until(step, now());
    if (!until) return false;
    ++pass.withheld;
    pass.withheld_until = std::min(*until, pass.withheld_until.value_or(*until));
    return true;
  }

  void count_repeats(const Pass& pass) {
    plan::StepIds counted;  // The same step may stand in a plan twice.
    each_tried(pass, [&](const plan::Step& step) {
      if (pass.result.outcomes.at(step.id).state != plan::Outcome::State::kDone || !counted.insert(step.id).second) return;
      if (!repeats[pass.key].done(step, now())) return;
      const std::string what = "done " + std::to_string(Repeats::kTimes) +
                               " times within a minute, and something changes it back: " + step.id.text();
      logger.warn(what, fields(pass, {{"step", step.id.text()}, {"reason", step.reason}}));
    });
    if (!repeats.empty() && !repeats_tick.pending()) tick_repeats();
  }

  void tick_repeats() {
    repeats_tick.set(Repeats::kWindow, [this] {
      for (auto& [key, steps] : repeats) steps.forget(now());
      std::erase_if(repeats, [](const auto& entry) { return entry.second.size() == 0; });
      if (!repeats.empty()) tick_repeats();
    });
  }

  void log_pass(const Pass& pass) {
    if (options.metrics != nullptr) options.metrics->steps_withheld(pass.controller, pass.withheld);
    if (pass.withheld > 0 && pass.result.outcomes.empty()) return;
    std::vector<core::Json> done;
    core::Json failed = core::Json::array();
    for (const auto& [id, outcome] : pass.result.outcomes) {
      if (outcome.state == plan::Outcome::State::kDone) {
        done.emplace_back(id.text());
      } else if (outcome.error) {
        const std::string code(core::to_string(outcome.error->code));
        failed.push_back({{"step", id.text()}, {"code", code}, {"message", outcome.error->message}});
      }
    }
    std::vector<core::Field> more = {
        {"done", done}, {"took_ms", (now() - pass.began).count()}, {"intent", pass.plan.whole_intent().text()}};
    if (!failed.empty()) more.push_back({"failed", failed});
    if (!pass.result.complete) more.push_back({"complete", false});
    const bool conflicts_only = std::ranges::all_of(pass.result.outcomes, [](const auto& outcome) {
      return !outcome.second.error || outcome.second.error->code == core::ErrorCode::kConflict;
    });
    logger.log(failed.empty() || conflicts_only ? core::Level::kInfo : core::Level::kWarn, "pass",
               fields(pass, std::move(more)));
    if (options.metrics == nullptr) return;
    options.metrics->steps(pass.controller, done.size(), failed.size());
    if (pass.result.timed_out) options.metrics->pass_timed_out(pass.controller);
  }

  [[nodiscard]] static std::vector<core::Field> fields(const Pass& pass, std::vector<core::Field> more) {
    std::vector<core::Field> all = {
        {"controller", pass.controller}, {"namespace", pass.key.key.ns}, {"name", pass.key.key.name}, {"reconcileID", pass.id}};
    for (core::Field& field : more) all.push_back(std::move(field));
    return all;
  }

  // Gates.

  void tick_gates() {
    if (gated.empty()) return gate_tick.cancel();
    if (!gate_tick.pending()) {
      gate_tick.set(kGateTick, [this] {
        check_gates();
        tick_gates();
      });
    }
  }

  void check_gates() {
    std::vector<PassPtr> free;
    for (const auto& [key, pass] : gated) {
      // One closed gate holds the key, whatever the others say: of hundreds, not all are asked whenever something moves.
      while (!pass->gates.empty() && pass->gates.back()->open()) pass->gates.pop_back();
      if (!pass->gates.empty() && now() >= pass->settle_at) settle(*pass);
      if (pass->gates.empty()) free.push_back(pass);
    }
    for (const PassPtr& pass : free) {
      gated.erase(pass->key);
      if (options.metrics != nullptr)
        options.metrics->gate_waited(pass->controller, now() - pass->gated_since, pass->settled_live);
      finish(pass);
    }
  }

  void settle(Pass& pass) {
    pass.settle_at = now() + options.gate_cap;
    pass.settled_live = true;
    std::erase_if(pass.gates, [&](const plan::GatePtr& gate) {
      if (gate->open()) return true;
      const auto* kube_gate = dynamic_cast<const KubeGate*>(gate.get());
      if (kube_gate == nullptr) {
        // Nothing here can ask Slurm. But a snapshot that is still older than the write is by now too old to be evidence of
        // anything, and a server that went for good must not hold its key for ever.
        logger.info("a write was not seen in time: going on without", fields(pass, {{"gate", gate->describe()}}));
        return true;
      }
      logger.warn("caches are slow to show a write: reading it live", fields(pass, {{"gate", gate->describe()}}));
      kube_gate->settle();
      return false;
    });
  }

  // The end of a pass.

  /// It counts as under way no longer; a gate may still hold its key.
  void work_ended(const Pass& pass) {
    if (running.erase(pass.key) == 0) return;
    if (options.metrics != nullptr) options.metrics->pass_worked(pass.controller, now() - pass.began);
  }

  void finish(const PassPtr& pass) {
    const WorkKey key = pass->key;
    work_ended(*pass);
    const core::Duration hold = stopping ? core::Duration{0} : pace(*pass);
    if (hold > core::Duration{0}) {
      // It counts as being processed until then: its own events must not wake it.
      loop.after(hold, guarded([this, key] {
                   queue.done(key, now());
                   plan_pump();
                 }));
    } else {
      queue.done(key, now());
    }
    const Metrics::PassEnd end = requeue(*pass);
    if (options.metrics != nullptr) {
      options.metrics->pass_ended(pass->controller, end);
      if (end == Metrics::PassEnd::kError) options.metrics->queue_retried(pass->controller);
    }
    if (stopping) return check_stopped();
    plan_pump();
  }

  Metrics::PassEnd requeue(const Pass& pass) {
    if (stopping) return Metrics::PassEnd::kSuccess;
    const WorkKey& key = pass.key;
    if (pass.plan.wake()) queue.add_after(key, *pass.plan.wake(), now());
    if (pass.withheld_until) queue.add_after(key, std::max(*pass.withheld_until - now(), core::Duration{0}), now());
    if (pass.failed || pass.result.failed) {
      queue.add_backoff(key, now(), pass.result.retry_after.value_or(core::Duration{0}));
      return Metrics::PassEnd::kError;
    }
    queue.forget(key);
    // What was done is to be seen once more: its outcomes are part of the next Observed.
    if (!pass.result.complete || did_something(pass)) {
      queue.add(key, now());
      return Metrics::PassEnd::kRequeue;
    }
    return pass.plan.wake() || pass.withheld_until ? Metrics::PassEnd::kRequeueAfter : Metrics::PassEnd::kSuccess;
  }

  /// A key that is dear to plan and has nothing to do is not planned for every event of a storm, but for many at once.
  [[nodiscard]] core::Duration pace(const Pass& pass) const {
    if (pass.plan.step_count() > pass.withheld) return core::Duration{0};
    return std::min(kPaceCap, pass.planning * kPaceFactor);
  }

  template <class Each>
  static void each_tried(const Pass& pass, Each each) {
    for (const auto& [name, lane] : pass.plan.lanes()) {
      for (const auto& group : lane.groups()) {
        for (const plan::Step& step : group) {
          const bool event = dynamic_cast<const EventAct*>(step.act.get()) != nullptr;
          if (!event && pass.result.outcomes.contains(step.id)) each(step);
        }
      }
    }
  }

  [[nodiscard]] static bool did_something(const Pass& pass) {
    bool did = false;
    each_tried(pass, [&](const plan::Step&) { did = true; });
    return did;
  }

  // The end.

  void check_stopped() {
    if (!stopping || stopped || !running.empty()) return;
    end_now();
  }

  void end_now() {
    if (stopped) return;
    stopped = true;
    stop_timer.cancel();
    for (const auto& entry : entries) {
      if (entry->watch) entry->watch->stop();
    }
    named.stop();
    // Later: this may have been called from a pass of the executor.
    loop.after(core::Duration{0}, guarded([this] { events.stop(kEventGrace, guarded([this] { give_up_lease(); })); }));
  }

  /// A reply was lost, and the gate that waits for what became of the write is closed.
  static bool may_still_write(const Pass& pass) {
    return !pass.gates.empty() && std::ranges::any_of(pass.result.outcomes, [](const auto& entry) {
      return entry.second.error && entry.second.error->code == core::ErrorCode::kUnknownOutcome;
    });
  }

  void give_up_lease() {
    if (!election) return ended();
    if (running.empty() && !unsettled) return election->release(guarded([this] { ended(); }));
    // What is under way may still write: nobody else may begin before the lease has run out.
    logger.warn("the lease is not released, it runs out by itself: writes may be under way", {{"passes", running.size()}});
    election->end();
    ended();
  }

  void ended() {
    logger.info("stopped");
    if (stop_done) stop_done();
  }

  std::function<void()> on_leading;

  void begin_leading() {
    leads = true;
    // The caches of a standby may lag behind what the leader before us wrote last: what we act on is read after it has ended.
    if (election) {
      for (const auto& entry : entries) entry->renew();
      if (on_leading) on_leading();
    }
    if (options.metrics != nullptr && options.election) options.metrics->leader(options.election->key.name, true);
    plan_pump();
  }

  void lost(const std::string& why) {
    leads = false;
    stopping = true;
    if (options.metrics != nullptr && options.election) options.metrics->leader(options.election->key.name, false);
    logger.error("the lease was lost", {{"why", why}});
    if (options.on_lost) options.on_lost(why);
  }
};

void Manager::Impl::observe(const PassPtr& pass) {
  if (stopping) return finish(pass);
  Context observed_context;
  observed_context.now = loop.clock().wall();
  observed_context.mono = pass->observed_at = now();
  if (const auto it = ledgers.find(pass->key); it != ledgers.end()) observed_context.outcomes = it->second.outcomes();
  observed_context.facts = pass->facts;
  std::string bug;
  try {
    NamedWatches::Reading reading(named, pass->key);
    pass->observed = controllers[pass->key.controller].controller->observe(pass->key.key, reading, observed_context);
  } catch (const std::exception& error) {
    bug = describe(error);
  } catch (...) {
    bug = "exception";
  }
  if (!bug.empty()) return broke(pass, "observe failed: this is a bug", bug);
  if (pass->observed) return plan_off_loop(pass);
  work_ended(*pass);
  queue.done(pass->key, now());
  unobserved.insert(pass->key);
  queue.add_after(pass->key, kUnobservedRetry, now());
  if (options.metrics != nullptr) options.metrics->pass_ended(pass->controller, Metrics::PassEnd::kRequeueAfter);
  plan_pump();
}

Manager::Manager(core::Loop& loop, core::Random& random, core::Logger& logger, Client& client, ManagerOptions options)
    : impl_(std::make_unique<Impl>(*this, loop, random, logger, client, std::move(options))) {
  if (!impl_->options.election) return;
  LeaderElection::Callbacks callbacks;
  callbacks.on_leading = [impl = impl_.get()] { impl->begin_leading(); };
  callbacks.on_slow_renewal = [impl = impl_.get()] {
    if (impl->options.metrics != nullptr) impl->options.metrics->slow_renewal(impl->options.election->key.name);
  };
  callbacks.on_lost = [impl = impl_.get()](const std::string& why) { impl->lost(why); };
  impl_->election =
      std::make_unique<LeaderElection>(loop, random, logger, client, *impl_->options.election, std::move(callbacks));
  client.set_lease_deadline([election = impl_->election.get()] { return election->deadline(); });
}

Manager::~Manager() {
  impl_->alive.reset();
  // No more leader, no more writes: whoever still uses the client has lost the right to.
  if (impl_->election) impl_->client.set_lease_deadline([]() -> std::optional<core::MonoTime> { return std::nullopt; });
}

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
  impl_->entries.push_back(std::move(entry));
}

void Manager::add(Controller& controller) {
  const auto id = static_cast<std::uint32_t>(impl_->controllers.size());
  const auto [it, is_new] = impl_->controller_ids.emplace(controller.name(), id);
  if (!is_new) throw std::logic_error("two controllers named " + controller.name());
  impl_->controllers.push_back({&controller, controller.name()});
  if (impl_->options.metrics != nullptr)
    impl_->options.metrics->add_controller(controller.name(), impl_->options.max_in_flight);
}

void Manager::add_target(plan::Target& target) {
  impl_->router.add(target);
}

void Manager::wake(std::string_view controller, const Key& key, core::Duration delay) {
  const auto it = impl_->controller_ids.find(controller);
  if (it == impl_->controller_ids.end()) throw std::logic_error("no controller named " + std::string(controller));
  impl_->add({it->second, key}, delay);
}

void Manager::wake_all(std::string_view controller, const std::vector<Key>& keys) {
  for (const Key& key : keys) wake(controller, key);
}

void Manager::moved() {
  if (impl_->moved_planned) return;
  impl_->moved_planned = true;
  impl_->loop.after(core::Duration{0}, impl_->guarded([impl = impl_.get()] {
    impl->moved_planned = false;
    impl->on_moved();
  }));
}

void Manager::start() {
  impl_->started = true;
  // Told by standbys too.
  if (impl_->options.metrics != nullptr && impl_->election)
    impl_->options.metrics->leader(impl_->options.election->key.name, false);
  for (const auto& entry : impl_->entries) entry->watch->start();
  if (impl_->election) {
    impl_->election->start();
  } else {
    impl_->begin_leading();
  }
}

void Manager::on_leading(std::function<void()> callback) {
  impl_->on_leading = std::move(callback);
}

void Manager::stop(std::function<void()> done) {
  impl_->stop_done = std::move(done);
  if (impl_->stopping) return;
  impl_->stopping = true;
  impl_->due.cancel();
  impl_->gate_tick.cancel();
  // What only waits for a gate does nothing any more, unless its last write is still on its way.
  for (const auto& [key, pass] : impl_->gated) {
    impl_->unsettled = impl_->unsettled || Impl::may_still_write(*pass);
    impl_->queue.done(key, impl_->now());
  }
  impl_->gated.clear();
  impl_->logger.info("stopping", {{"passes", impl_->running.size()}});
  if (impl_->running.empty()) return impl_->end_now();
  impl_->stop_timer.set(impl_->options.stop_grace, [impl = impl_.get()] {
    impl->logger.warn("passes did not end in time", {{"passes", impl->running.size()}});
    impl->end_now();
  });
}

bool Manager::plans_in_time() const {
  static constexpr core::Duration kPlanDeadline{60000};
  return std::ranges::none_of(impl_->running, [&](const auto& entry) {
    const core::Duration::rep since = *entry.second->planned_since;
    return since != 0 && impl_->now().since_start.count() - since >= kPlanDeadline.count();
  });
}

bool Manager::synced() const {
  return impl_->all_synced();
}
bool Manager::leading() const {
  return impl_->leads;
}

bool Manager::idle() const {
  return impl_->running.empty() && impl_->queue.processing() == 0 && impl_->unobserved.empty() &&
         !impl_->queue.has_ready(impl_->now()) && !impl_->moved_planned && !impl_->pump_planned && !impl_->queue.has_failures();
}

std::vector<std::string> Manager::held() const {
  std::vector<std::string> result;
  for (const auto& [key, pass] : impl_->gated) {
    for (const plan::GatePtr& gate : pass->gates) {
      if (!gate->open()) result.push_back(pass->controller + " " + key.key.str() + ": " + gate->describe());
    }
  }
  return result;
}

plan::Outcomes Manager::outcomes(std::string_view controller, const Key& key) const {
  const auto id = impl_->controller_ids.find(controller);
  if (id == impl_->controller_ids.end()) return {};
  const auto it = impl_->ledgers.find(WorkKey{id->second, key});
  return it == impl_->ledgers.end() ? plan::Outcomes{} : it->second.outcomes();
}

void Manager::collect() const {
  Metrics* metrics = impl_->options.metrics;
  if (metrics == nullptr) return;
  for (std::uint32_t id = 0; id < impl_->controllers.size(); ++id) {
    const std::string& name = impl_->controllers[id].name;
    core::Duration sum{0};
    core::Duration longest{0};
    for (const auto& [key, pass] : impl_->running) {
      if (key.controller != id) continue;
      const core::Duration age = impl_->now() - pass->began;
      sum += age;
      longest = std::max(longest, age);
    }
    const WorkQueue::Counts counts = impl_->queue.counts(id, impl_->now());
    metrics->queue_counts(name, counts.due, counts.adds);
    metrics->unfinished(name, sum, longest);
  }
  for (const auto& entry : impl_->entries) {
    const std::string name = entry->resource.plural + (entry->resource.group.empty() ? "" : "." + entry->resource.group);
    metrics->cache(name, entry->cache->size(), entry->cache->bytes(), entry->cache->resource_version());
    metrics->watch_failures(name, entry->watch->stats().failures);
  }
  metrics->events_dropped(impl_->events.dropped());
}

std::size_t Manager::steps_remembered() const {
  std::size_t count = 0;
  for (const auto& [key, steps] : impl_->repeats) count += steps.size();
  return count;
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
    views.push_back({entry.cache.get(), entry.scope, [watch = entry.watch.get()] { watch->distrust(); }});
  };
  for (const auto& entry : impl_->entries) add_view(*entry);
  impl_->named.each(add_view);
  return views;
}

}  // namespace kube
