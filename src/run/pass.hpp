// One pass of a key: observe, plan, act, and wait until the caches show the writes. Contains the data of a pass and the rules
// for its states; run/passes.hpp runs the passes.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/log.hpp"
#include "plan/executor.hpp"
#include "plan/plan.hpp"
#include "run/queue.hpp"

namespace run {

/// The state of a pass. It starts as observing. These are all transitions:
///
/// | From | To | When |
/// | --- | --- | --- |
/// | observing | planning | `observe` gave an Observed; a worker thread plans. |
/// | observing | done | `observe` threw or returned null, or the manager is stopping. |
/// | planning | needing | The plan asks for facts that are not known yet: they are read live. |
/// | planning | acting | The plan has steps. |
/// | planning | done | No steps, or the plan may not act (dry run, stopping), or `plan` threw or asked for facts too often. |
/// | needing | observing | All facts are answered, even if some with errors. |
/// | acting | gated | The steps were tried, and the caches do not show all of their writes yet. |
/// | acting | done | The steps were tried, and there is nothing to wait for, or the manager is stopping. |
/// | gated | done | The caches show the writes, or their outcome cannot be read (run/gates.hpp), or the manager is stopping. |
///
/// Until the pass is done, its key is not processed again. Passes that are not `gated` or `done` count against max_in_flight.
enum class PassState { kObserving, kPlanning, kNeeding, kActing, kGated, kDone };

std::string_view to_string(PassState state);
/// Returns true for the transitions above, and for no others.
bool may_follow(PassState from, PassState to);

struct Pass {
  WorkKey key;
  std::string controller;  ///< The name of key.controller.
  std::string id;          ///< Identifies the pass in its log lines ("reconcileID", as in controller-runtime).
  std::string share;       ///< The result of Controller::share for the key.
  core::MonoTime began;

  // The results of observing and planning.
  core::MonoTime observed_at;
  /// While a thread plans: when the planning began, in milliseconds of MonoTime. The planning thread writes this. Otherwise 0.
  std::shared_ptr<std::atomic<core::Duration::rep>> planned_since = std::make_shared<std::atomic<core::Duration::rep>>(0);
  core::Duration planning{0};  ///< The duration of the last observing and planning.
  plan::Facts facts;
  int rounds = 0;  ///< How many times the plan has asked for facts.
  std::shared_ptr<const void> observed;
  plan::Plan plan;
  bool broken = false;  ///< Observing or planning failed, which is a bug of the controller.

  // The results of acting.
  plan::PassResult result;
  std::size_t withheld = 0;                      ///< Steps that were withheld: see Repeats.
  std::optional<core::MonoTime> withheld_until;  ///< When the first withheld step may run.

  // The state of waiting for gates, at the end of the pass: see Gates.
  std::vector<plan::GatePtr> gates;
  core::MonoTime gated_since;
  core::MonoTime settle_at;
  bool settled_live = false;  ///< A gate was closed for so long that it was settled (plan::Gate::settle).

  [[nodiscard]] PassState state() const { return state_; }
  /// Requires may_follow(state(), to).
  void move_to(PassState to);

  /// Returns the steps that were tried, except incidental ones (plan::Act::incidental).
  [[nodiscard]] std::vector<const plan::Step*> tried() const;
  /// Reports whether a reply was lost and a gate is still closed, so that the server might still carry out the write.
  [[nodiscard]] bool may_still_write() const;
  /// Returns the fields that all log lines of the pass have, followed by `more`.
  [[nodiscard]] std::vector<core::Field> fields(std::vector<core::Field> more) const;

 private:
  PassState state_ = PassState::kObserving;
};
using PassPtr = std::shared_ptr<Pass>;

}  // namespace run
