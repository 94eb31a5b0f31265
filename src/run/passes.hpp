// Runs the passes of all keys. Takes a key from the queue and moves the key's pass from state to state (run/pass.hpp) until the
// pass is done. Then decides when the key is processed again.
//
// A key is held until its gates are open. After a pass that tried a step, the key gets another pass. After any other pass, it
// waits to be woken. A step that repeats is withheld for a while (run/repeats.hpp), with the later groups of its lane.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/log.hpp"
#include "core/loop.hpp"
#include "core/random.hpp"
#include "plan/executor.hpp"
#include "plan/ledger.hpp"
#include "run/controller.hpp"
#include "run/gates.hpp"
#include "run/pass.hpp"
#include "run/pass_metrics.hpp"
#include "run/queue.hpp"
#include "run/repeats.hpp"

namespace run {

struct PassOptions {
  /// The maximum number of passes at once. Passes that only wait for a gate do not count. All passes of one Controller::share
  /// get at most a quarter (a sixteenth once half are in use), so that a slow system delays no others.
  std::size_t max_in_flight = 64;
  bool dry_run = false;            ///< Log plans without executing them.
  core::Duration gate_cap{30000};  ///< After this time, closed gates are settled by a live read (run/gates.hpp).
  QueueOptions queue;
  /// Called on the loop with every plan, before the plan is executed. The plan is as its controller made it.
  std::function<void(const plan::Plan&)> on_plan;
};

class Passes {
 public:
  struct Callbacks {
    std::function<bool()> may_begin;                 ///< Returns true once all caches are synced and this process leads.
    std::function<void(std::size_t keys)> on_first;  ///< The first passes are about to begin; `keys` keys are queued.
    std::function<void()> on_ended;                  ///< A pass has ended. Called only while stopping.
    std::function<void(const std::string& system)> on_waiting;  ///< A plan waits for a system: Plan::waits_on.
    /// Makes the recorder of each `observe`. The recorder is destroyed after `observe`.
    std::function<std::unique_ptr<Recorder>(const WorkKey&)> recorder = [](const WorkKey&) {
      return std::make_unique<Recorder>();
    };
  };
  /// `metrics` may be null.
  Passes(core::Loop& loop, core::Random& random, core::Logger& logger, plan::Executor& executor, PassOptions options,
         Callbacks callbacks, PassMetrics* metrics = nullptr);

  /// Adds a controller, which must live until its last pass has ended. Requires a unique name.
  void add(Controller& controller);
  /// Returns the number of a controller in WorkKeys. Requires that the controller exists.
  [[nodiscard]] std::uint32_t id_of(std::string_view controller) const;

  /// Processes a key after `delay` at the latest.
  void wake(const WorkKey& key, core::Duration delay = core::Duration{0});
  /// Begins the passes that may begin, in a later loop iteration.
  void pump_soon();
  /// Checks the gates after a change of a cache.
  void caches_changed();

  /// From now on, no pass begins and no plan is executed. Acts under way continue to their end.
  void halt() { stopping_ = true; }
  /// From now on, no pass begins and no plan is executed. Releases the keys that only wait for a gate.
  void stop();
  /// Reports whether an act of ours might still write: a pass is under way, or the outcome of an earlier write is unknown.
  [[nodiscard]] bool may_still_write() const { return !running_.empty() || unsettled_; }
  [[nodiscard]] std::size_t under_way() const { return running_.size(); }

  /// Returns false if a call of `plan` has been running for a minute or longer. `plan` does no I/O, so it does not help to
  /// wait: such a call will not end soon, and it occupies one of few threads.
  [[nodiscard]] bool plans_in_time() const;
  [[nodiscard]] bool idle() const;  ///< No pass runs, and no key is ready, held or due for a retry.
  /// Returns the keys that closed gates hold, and what each key waits for. For logs and tests.
  [[nodiscard]] std::vector<std::string> held() const { return gates_.describe(); }
  /// Returns the outcomes kept for a key. For tests.
  [[nodiscard]] plan::Outcomes outcomes(std::string_view controller, const Key& key) const;
  /// Returns the number of steps that are watched for repetition. For tests.
  [[nodiscard]] std::size_t steps_remembered() const;
  /// Returns the state of the key's pass; kDone if the key has no pass.
  [[nodiscard]] PassState state(const WorkKey& key) const;
  /// Updates the gauges of the metrics. Call it before they are exported.
  void collect() const;

 private:
  struct Named {
    Controller* controller = nullptr;
    std::string name;
  };

  [[nodiscard]] core::MonoTime now() const { return loop_.clock().mono(); }
  core::Callback guarded(core::Callback call) const;
  void pump();
  [[nodiscard]] std::string share_of(const WorkKey& key) const;
  [[nodiscard]] bool has_room(const std::string& share) const;
  void begin(const WorkKey& key);
  void observe(const PassPtr& pass);
  void plan_off_loop(const PassPtr& pass);
  void planned(const PassPtr& pass, plan::Plan made, const std::string& bug);
  void ask(const PassPtr& pass, const std::vector<plan::Need>& needs);
  void act(const PassPtr& pass);
  void acted(const PassPtr& pass, plan::PassResult result);
  void gates_opened(const PassPtr& pass);
  void broke(const PassPtr& pass, std::string_view message, const std::string& what);
  void work_ended(const Pass& pass);
  void finish(const PassPtr& pass);
  PassMetrics::PassEnd requeue(const Pass& pass);
  [[nodiscard]] static core::Duration rest_of(const Pass& pass);
  void drop_old_outcomes(const Pass& pass);
  [[nodiscard]] bool withhold(Pass& pass, const plan::Step& step) const;
  void count_repeats(const Pass& pass);
  void forget_repeats();
  void log_pass(const Pass& pass);

  core::Loop& loop_;
  core::Logger& logger_;
  plan::Executor& executor_;
  PassOptions options_;
  Callbacks callbacks_;
  PassMetrics no_metrics_;
  PassMetrics* metrics_;
  std::string process_id_;    ///< Distinguishes the passes of this process from those of other processes.
  std::uint64_t passes_ = 0;  ///< The number of passes begun so far.

  std::vector<Named> controllers_;
  std::map<std::string, std::uint32_t, std::less<>> controller_ids_;
  WorkQueue queue_;
  Gates gates_;
  std::map<WorkKey, PassPtr> running_;  ///< All passes except those that wait for a gate.
  std::map<WorkKey, plan::Ledger> ledgers_;
  std::map<WorkKey, Repeats> repeats_;

  core::Timer due_;
  core::Timer repeats_tick_;
  bool pump_planned_ = false;
  bool begun_ = false;  ///< The first passes have begun.
  bool stopping_ = false;
  bool unsettled_ = false;  ///< A write of a pass that has ended can still take effect.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace run
