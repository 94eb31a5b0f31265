#include "run/passes.hpp"

#include <algorithm>
#include <stdexcept>

#include "core/hash.hpp"
#include "core/retry.hpp"

namespace run {

namespace {

constexpr int kMaxNeedRounds = 8;
constexpr int kInitialPriority = -100;  ///< The priority of keys from the first lists.
/// After a pass that found nothing to do, its key rests for this multiple of the time that observing and planning took.
constexpr int kRestFactor = 3;
constexpr core::Duration kLongestRest{200};

std::string describe(const std::exception& error) {
  const std::string what = error.what();
  return what.empty() ? "exception" : what;
}

}  // namespace

Passes::Passes(core::Loop& loop, core::Random& random, core::Logger& logger, plan::Executor& executor, PassOptions options,
               Callbacks callbacks, PassMetrics* metrics)
    : loop_(loop),
      logger_(logger),
      executor_(executor),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      metrics_(metrics != nullptr ? metrics : &no_metrics_),
      process_id_(core::hex(random.bytes(4))),
      queue_(random, options_.queue, [this](const WorkKey& key) { return share_of(key); }),
      gates_(loop, logger, options_.gate_cap, [this](const PassPtr& pass) { gates_opened(pass); }),
      due_(loop),
      repeats_tick_(loop) {}

core::Callback Passes::guarded(core::Callback call) const {
  return [weak = std::weak_ptr<bool>(alive_), call = std::move(call)] {
    if (!weak.expired()) call();
  };
}

// --- Keys ---

void Passes::add(Controller& controller) {
  const auto id = static_cast<std::uint32_t>(controllers_.size());
  const auto [it, is_new] = controller_ids_.emplace(controller.name(), id);
  if (!is_new) throw std::logic_error("two controllers named " + controller.name());
  controllers_.push_back({&controller, controller.name()});
  metrics_->add_controller(controller.name(), options_.max_in_flight);
}

std::uint32_t Passes::id_of(std::string_view controller) const {
  const auto it = controller_ids_.find(controller);
  if (it == controller_ids_.end()) throw std::logic_error("no controller named " + std::string(controller));
  return it->second;
}

void Passes::wake(const WorkKey& key, core::Duration delay) {
  if (stopping_) return;
  queue_.add_after(key, delay, now(), begun_ ? 0 : kInitialPriority);
  pump_soon();
}

void Passes::pump_soon() {
  if (pump_planned_) return;
  pump_planned_ = true;
  loop_.after(core::Duration{0}, guarded([this] {
                pump_planned_ = false;
                pump();
              }));
}

void Passes::pump() {
  if (stopping_ || !callbacks_.may_begin()) return;
  if (!begun_) {
    begun_ = true;
    callbacks_.on_first(queue_.depth());
  }
  while (running_.size() < options_.max_in_flight) {
    const auto key = queue_.pop(now(), [this](const std::string& share) { return has_room(share); });
    if (!key) break;
    begin(*key);
  }
  if (const auto at = queue_.next_due()) {
    due_.set(std::max(*at - now(), core::Duration{0}), [this] { pump(); });
  } else {
    due_.cancel();
  }
}

std::string Passes::share_of(const WorkKey& key) const {
  return controllers_[key.controller].controller->share(key.key);
}

/// True if one more pass may run for this share (Controller::share). The share must leave room for the passes of other shares.
bool Passes::has_room(const std::string& share) const {
  const std::size_t all = options_.max_in_flight;
  const std::size_t most = std::max<std::size_t>(running_.size() < all / 2 ? all / 4 : all / 16, 1);
  if (running_.size() < most) return true;
  const auto count = std::ranges::count_if(running_, [&](const auto& entry) { return entry.second->share == share; });
  return share.empty() || static_cast<std::size_t>(count) < most;
}

void Passes::caches_changed() {
  gates_.check();
  pump_soon();
}

void Passes::stop() {
  halt();
  due_.cancel();
  // A pass that only waits for a gate sends no more writes. But if the outcome of its last write is unknown, the server may
  // still carry out that write.
  for (const PassPtr& pass : gates_.drop_all()) {
    unsettled_ = unsettled_ || pass->may_still_write();
    pass->move_to(PassState::kDone);
    queue_.done(pass->key, now());
  }
}

// --- A pass ---

void Passes::begin(const WorkKey& key) {
  auto pass = std::make_shared<Pass>();
  pass->key = key;
  pass->controller = controllers_[key.controller].name;
  pass->id = process_id_ + "-" + std::to_string(++passes_);
  pass->began = now();
  pass->share = share_of(key);
  running_[key] = pass;
  metrics_->queue_popped(pass->controller, queue_.last_wait());
  metrics_->pass_started(pass->controller);
  observe(pass);
}

void Passes::observe(const PassPtr& pass) {
  if (stopping_) return finish(pass);
  plan::Context context;
  context.now = loop_.clock().wall();
  context.mono = pass->observed_at = now();
  if (const auto it = ledgers_.find(pass->key); it != ledgers_.end()) context.outcomes = it->second.outcomes();
  context.facts = pass->facts;
  std::string bug;
  try {
    const std::unique_ptr<Recorder> recorder = callbacks_.recorder(pass->key);
    pass->observed = controllers_[pass->key.controller].controller->observe(pass->key.key, *recorder, context);
    if (!pass->observed) bug = "it gave none";
  } catch (const std::exception& error) {
    bug = describe(error);
  } catch (...) {
    bug = "exception";
  }
  if (!bug.empty()) return broke(pass, "observe failed: this is a bug", bug);
  plan_off_loop(pass);
}

void Passes::plan_off_loop(const PassPtr& pass) {
  pass->move_to(PassState::kPlanning);
  Controller* controller = controllers_[pass->key.controller].controller;
  auto made = std::make_shared<std::pair<plan::Plan, std::string>>();
  loop_.offload(
      [controller, observed = pass->observed, made, since = pass->planned_since, clock = &loop_.clock()] {
        *since = clock->mono().since_start.count();
        // A plan that throws is a bug of its controller. The bug must not affect other keys, and the plan must not count as an
        // empty plan.
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

void Passes::planned(const PassPtr& pass, plan::Plan made, const std::string& bug) {
  if (!bug.empty()) return broke(pass, "plan failed: this is a bug", bug);
  if (options_.on_plan) options_.on_plan(made);
  for (const std::string& system : made.waits_on()) callbacks_.on_waiting(system);
  const std::vector<plan::Need> open = plan::open_needs(made, pass->facts);
  if (!open.empty() && !stopping_) return ask(pass, open);
  pass->plan = std::move(made);
  act(pass);
}

void Passes::ask(const PassPtr& pass, const std::vector<plan::Need>& needs) {
  if (++pass->rounds > kMaxNeedRounds) {
    logger_.error("a plan requests new facts without end: this is a bug", pass->fields({{"need", needs.front().id}}));
    pass->broken = true;
    return finish(pass);
  }
  pass->move_to(PassState::kNeeding);
  executor_.fetch(needs, [this, weak = std::weak_ptr<bool>(alive_), pass](plan::Facts facts) {
    if (weak.expired()) return;
    for (auto& [id, fact] : facts) pass->facts.insert_or_assign(id, std::move(fact));
    pass->move_to(PassState::kObserving);
    observe(pass);
  });
}

void Passes::act(const PassPtr& pass) {
  drop_old_outcomes(*pass);
  if (pass->plan.step_count() == 0 || stopping_) return finish(pass);
  if (options_.dry_run) {
    logger_.info("plan (not carried out)", pass->fields({{"plan", pass->plan.describe()}}));
    return finish(pass);
  }
  pass->move_to(PassState::kActing);
  executor_.run(
      pass->plan,
      [this, weak = std::weak_ptr<bool>(alive_), pass](plan::PassResult result) {
        if (weak.expired()) return;
        acted(pass, std::move(result));
      },
      [&](const plan::Step& step) { return withhold(*pass, step); });
}

void Passes::acted(const PassPtr& pass, plan::PassResult result) {
  pass->result = std::move(result);
  if (!pass->result.outcomes.empty()) ledgers_[pass->key].add(pass->result.outcomes);
  log_pass(*pass);
  count_repeats(*pass);
  pass->gates = std::move(pass->result.gates);
  const bool all_open = Gates::all_open(*pass);
  if (stopping_) unsettled_ = unsettled_ || pass->may_still_write();
  if (all_open || stopping_) return finish(pass);
  pass->move_to(PassState::kGated);
  work_ended(*pass);
  gates_.hold(pass);
  pump_soon();
}

void Passes::gates_opened(const PassPtr& pass) {
  metrics_->gate_waited(pass->controller, now() - pass->gated_since, pass->settled_live);
  finish(pass);
}

/// Ends a pass whose controller has thrown an exception or observed nothing.
void Passes::broke(const PassPtr& pass, std::string_view message, const std::string& what) {
  logger_.error(message, pass->fields({{"what", what}}));
  metrics_->pass_panicked(pass->controller);
  pass->broken = true;
  finish(pass);
}

// --- The end of a pass ---

/// Stops counting the pass as under way. A closed gate can still hold its key.
void Passes::work_ended(const Pass& pass) {
  if (running_.erase(pass.key) == 0) return;
  metrics_->pass_worked(pass.controller, now() - pass.began);
}

void Passes::finish(const PassPtr& pass) {
  pass->move_to(PassState::kDone);
  const WorkKey key = pass->key;
  work_ended(*pass);
  const core::Duration rest = stopping_ ? core::Duration{0} : rest_of(*pass);
  if (rest > core::Duration{0}) {
    // During the rest, the key counts as being processed, so that its own events do not wake it.
    loop_.after(rest, guarded([this, key] {
                  queue_.done(key, now());
                  pump_soon();
                }));
  } else {
    queue_.done(key, now());
  }
  const PassMetrics::PassEnd end = requeue(*pass);
  metrics_->pass_ended(pass->controller, end);
  if (end == PassMetrics::PassEnd::kError) metrics_->queue_retried(pass->controller);
  if (stopping_) return callbacks_.on_ended();
  pump_soon();
}

PassMetrics::PassEnd Passes::requeue(const Pass& pass) {
  if (stopping_) return PassMetrics::PassEnd::kSuccess;
  const WorkKey& key = pass.key;
  if (pass.plan.wake()) queue_.add_after(key, *pass.plan.wake(), now());
  if (pass.withheld_until) queue_.add_after(key, std::max(*pass.withheld_until - now(), core::Duration{0}), now());
  if (pass.broken || pass.result.failed) {
    queue_.add_backoff(key, now(), pass.result.retry_after.value_or(core::Duration{0}));
    return PassMetrics::PassEnd::kError;
  }
  queue_.forget(key);
  // A pass with steps is followed by another pass, because its outcomes are part of the next Observed.
  if (!pass.result.complete || !pass.tried().empty()) {
    queue_.add(key, now());
    return PassMetrics::PassEnd::kRequeue;
  }
  return pass.plan.wake() || pass.withheld_until ? PassMetrics::PassEnd::kRequeueAfter : PassMetrics::PassEnd::kSuccess;
}

/// Returns how long the key rests after the pass. If planning takes long and finds nothing to do, the rest makes one pass
/// handle many events.
core::Duration Passes::rest_of(const Pass& pass) {
  if (pass.plan.step_count() > pass.withheld) return core::Duration{0};
  return std::min(kLongestRest, pass.planning * kRestFactor);
}

// --- What is kept of a key from pass to pass ---

void Passes::drop_old_outcomes(const Pass& pass) {
  const auto it = ledgers_.find(pass.key);
  if (it == ledgers_.end()) return;
  it->second.keep(pass.plan);
  if (it->second.outcomes().empty()) ledgers_.erase(it);
}

bool Passes::withhold(Pass& pass, const plan::Step& step) const {
  const auto known = repeats_.find(pass.key);
  if (known == repeats_.end()) return false;
  const auto until = known->second.withheld_until(step, now());
  if (!until) return false;
  ++pass.withheld;
  pass.withheld_until = std::min(*until, pass.withheld_until.value_or(*until));
  return true;
}

void Passes::count_repeats(const Pass& pass) {
  plan::StepIds counted;  // A plan may contain the same step twice.
  for (const plan::Step* step : pass.tried()) {
    if (pass.result.outcomes.at(step->id).state != plan::Outcome::State::kDone || !counted.insert(step->id).second) continue;
    if (!repeats_[pass.key].done(*step, now())) continue;
    const std::string what =
        "done " + std::to_string(Repeats::kTimes) + " times within a minute, and something changes it back: " + step->id.text();
    logger_.warn(what, pass.fields({{"step", step->id.text()}, {"reason", step->reason}}));
  }
  if (!repeats_.empty() && !repeats_tick_.pending()) forget_repeats();
}

void Passes::forget_repeats() {
  repeats_tick_.set(Repeats::kWindow, [this] {
    for (auto& [key, steps] : repeats_) steps.forget(now());
    std::erase_if(repeats_, [](const auto& entry) { return entry.second.size() == 0; });
    if (!repeats_.empty()) forget_repeats();
  });
}

// --- Logs, metrics and state for others ---

void Passes::log_pass(const Pass& pass) {
  metrics_->steps_withheld(pass.controller, pass.withheld);
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
  const bool races_only = std::ranges::all_of(pass.result.outcomes, [](const auto& outcome) {
    return !outcome.second.error || core::retry_of(outcome.second.error->code) == core::Retry::kDecideAnew;
  });
  logger_.log(failed.empty() || races_only ? core::Level::kInfo : core::Level::kWarn, "pass", pass.fields(std::move(more)));
  metrics_->steps(pass.controller, done.size(), failed.size());
  if (pass.result.timed_out) metrics_->pass_timed_out(pass.controller);
}

bool Passes::plans_in_time() const {
  static constexpr core::Duration kPlanDeadline{60000};
  return std::ranges::none_of(running_, [&](const auto& entry) {
    const core::Duration::rep since = *entry.second->planned_since;
    return since != 0 && now().since_start.count() - since >= kPlanDeadline.count();
  });
}

bool Passes::idle() const {
  return running_.empty() && queue_.processing() == 0 && !queue_.has_ready(now()) && !pump_planned_ && !queue_.has_failures();
}

plan::Outcomes Passes::outcomes(std::string_view controller, const Key& key) const {
  const auto id = controller_ids_.find(controller);
  if (id == controller_ids_.end()) return {};
  const auto it = ledgers_.find(WorkKey{id->second, key});
  return it == ledgers_.end() ? plan::Outcomes{} : it->second.outcomes();
}

std::size_t Passes::steps_remembered() const {
  std::size_t count = 0;
  for (const auto& [key, steps] : repeats_) count += steps.size();
  return count;
}

PassState Passes::state(const WorkKey& key) const {
  if (gates_.holds(key)) return PassState::kGated;
  const auto it = running_.find(key);
  return it == running_.end() ? PassState::kDone : it->second->state();
}

void Passes::collect() const {
  for (std::uint32_t id = 0; id < controllers_.size(); ++id) {
    const std::string& name = controllers_[id].name;
    core::Duration sum{0};
    core::Duration longest{0};
    for (const auto& [key, pass] : running_) {
      if (key.controller != id) continue;
      const core::Duration age = now() - pass->began;
      sum += age;
      longest = std::max(longest, age);
    }
    const WorkQueue::Counts counts = queue_.counts(id, now());
    metrics_->queue_counts(name, counts.due, counts.adds);
    metrics_->unfinished(name, sum, longest);
  }
}

}  // namespace run
