// Runs the passes of all keys: takes a key from the queue, and moves its pass from state to state (run/pass.hpp) until it is
// done; then decides when the key is looked at again.
//
// A key is held until its gates are open. After a pass that did something the key is looked at once more; at rest nothing runs.
// A step that is done again and again is withheld for a while (run/repeats.hpp), and what stands behind it in its lane waits.
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
  /// Keys observed, planned or acted on at once (keys that only wait for a gate not counted). Of one share (Controller::share)
  /// a quarter, and a sixteenth when half of all are taken: however slow it is, others get theirs.
  std::size_t max_in_flight = 64;
  bool dry_run = false;            ///< Log plans, do nothing.
  core::Duration gate_cap{30000};  ///< A gate closed for this long is settled by a live read.
  QueueOptions queue;
  /// Shown every plan as its controller made it, before anything of it is done; on the loop.
  std::function<void(const plan::Plan&)> on_plan;
};

class Passes {
 public:
  struct Callbacks {
    std::function<bool()> may_begin;                            ///< All caches are synced, and we lead.
    std::function<void(std::size_t keys)> on_first;             ///< The first passes are about to begin.
    std::function<void()> on_ended;                             ///< A pass has ended; only while stopping.
    std::function<void(const std::string& system)> on_waiting;  ///< A plan says so: Plan::waits_on.
    /// Made for each `observe`, and destroyed after it.
    std::function<std::unique_ptr<Recorder>(const WorkKey&)> recorder = [](const WorkKey&) {
      return std::make_unique<Recorder>();
    };
  };
  /// `metrics` may be null.
  Passes(core::Loop& loop, core::Random& random, core::Logger& logger, plan::Executor& executor, PassOptions options,
         Callbacks callbacks, PassMetrics* metrics = nullptr);

  /// Adds a controller, which must outlive this. Requires a name of its own.
  void add(Controller& controller);
  /// The number of a controller in WorkKeys. Requires that there is one of that name.
  [[nodiscard]] std::uint32_t id_of(std::string_view controller) const;

  /// Looks at a key, after `delay` at the latest.
  void wake(const WorkKey& key, core::Duration delay = core::Duration{0});
  /// Begins what may begin, in a turn of its own.
  void pump_soon();
  /// A cache has changed: gates are looked at again.
  void caches_changed();

  /// No pass begins any more, and no plan is carried out any more; acts that are under way end.
  void halt() { stopping_ = true; }
  /// The same, and keys that only wait for a gate are let go.
  void stop();
  /// Something of ours may still be written after all that was under way has ended or been given up.
  [[nodiscard]] bool may_still_write() const { return !running_.empty() || unsettled_; }
  [[nodiscard]] std::size_t under_way() const { return running_.size(); }

  /// No plan takes a minute. It is made of what it is given alone: one that takes so long will not end soon, and its thread is
  /// one of few.
  [[nodiscard]] bool plans_in_time() const;
  [[nodiscard]] bool idle() const;  ///< No pass runs, no key is ready or held, none is to be retried.
  /// Keys held by a closed gate, with what they wait for. For logs and tests.
  [[nodiscard]] std::vector<std::string> held() const { return gates_.describe(); }
  /// The outcomes kept for a key. For tests.
  [[nodiscard]] plan::Outcomes outcomes(std::string_view controller, const Key& key) const;
  /// How many steps are watched for being done again and again. For tests.
  [[nodiscard]] std::size_t steps_remembered() const;
  /// Where the pass of a key stands; done, if it has none.
  [[nodiscard]] PassState state(const WorkKey& key) const;
  /// Brings the gauges of the metrics up to date.
  void collect() const;

 private:
  struct Named {
    Controller* controller = nullptr;
    std::string name;
  };

  [[nodiscard]] core::MonoTime now() const { return loop_.clock().mono(); }
  core::Callback guarded(core::Callback call) const;
  void pump();
  [[nodiscard]] bool has_room(const WorkKey& key) const;
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
  std::string process_id_;    ///< Tells the passes of this process from those of others.
  std::uint64_t passes_ = 0;  ///< Begun so far.

  std::vector<Named> controllers_;
  std::map<std::string, std::uint32_t, std::less<>> controller_ids_;
  WorkQueue queue_;
  Gates gates_;
  std::map<WorkKey, PassPtr> running_;  ///< All but those that wait for a gate.
  std::map<WorkKey, plan::Ledger> ledgers_;
  std::map<WorkKey, Repeats> repeats_;

  core::Timer due_;
  core::Timer repeats_tick_;
  bool pump_planned_ = false;
  bool begun_ = false;  ///< The first passes have begun.
  bool stopping_ = false;
  bool unsettled_ = false;  ///< A write of a pass that has ended may still be carried out.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace run
