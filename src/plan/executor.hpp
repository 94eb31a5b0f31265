// Executes plans. No other code writes to Kubernetes or Slurm, except for the runtime's own objects, such as its Lease.
//
// The executor is a state machine on the loop. It passes steps to a Target, in the order of their lanes and groups. It limits
// the number of steps in flight, and ends a pass after max_steps or max_time. It returns the outcome of each step, and the
// gates that the key must wait for.
#pragma once

#include <functional>
#include <memory>
#include <typeindex>
#include <unordered_map>
#include <vector>

#include "core/loop.hpp"
#include "plan/plan.hpp"

namespace plan {

/// A gate is closed until the caches show a write. It is checked again whenever a cache changes.
class Gate {
 public:
  virtual ~Gate() = default;
  [[nodiscard]] virtual bool open() const = 0;
  /// Starts a live read of the outcome of the write; open() then reports the result. Called when the gate has been closed for
  /// too long. Returns false if the outcome cannot be read: then nothing should wait for the gate any longer.
  [[nodiscard]] virtual bool settle() const { return false; }
  [[nodiscard]] virtual std::string describe() const = 0;
};
using GatePtr = std::shared_ptr<const Gate>;

struct ActResult {
  core::Result<core::Json> value;  ///< The reply or the error. run() drops the reply; only fetch() returns it.
  /// The gates of a write. After kUnknownOutcome, the gates open once a later consistent read has shown the outcome.
  std::vector<GatePtr> gates;
};

/// Executes acts: kube::Target, slurm::Target, or a router over them.
class Target {
 public:
  using Done = std::function<void(ActResult)>;
  virtual ~Target() = default;
  /// Reports whether this target can execute acts of this kind.
  [[nodiscard]] virtual bool handles(const Act& act) const { return handlers_.contains(typeid(act)); }
  /// Executes the act and calls `done` exactly once, in a later loop iteration. Requires handles(*act).
  virtual void execute(ActPtr act, Done done);

 protected:
  /// Registers the handler of one kind of act. Call it once for each kind, before the first act of the kind.
  template <class Kind>
  void carries_out(std::function<void(std::shared_ptr<const Kind>, Done)> handler) {
    handlers_[typeid(Kind)] = [handler = std::move(handler)](ActPtr act, Done done) {
      handler(std::static_pointer_cast<const Kind>(std::move(act)), std::move(done));
    };
  }

 private:
  std::unordered_map<std::type_index, std::function<void(ActPtr, Done)>> handlers_;
};

/// Passes each act to the first target that handles it.
class Router final : public Target {
 public:
  void add(Target& target) { targets_.push_back(&target); }
  [[nodiscard]] bool handles(const Act& act) const override;
  void execute(ActPtr act, Done done) override;

 private:
  std::vector<Target*> targets_;
};

struct PassLimits {
  std::size_t max_steps = 1024;
  core::Duration max_time{3000};
  std::size_t max_in_flight = 16;
};

struct PassResult {
  Outcomes outcomes;  ///< The steps tried in this pass, each with count 1. The engine adds up the counts.
  std::vector<GatePtr> gates;
  bool complete = true;  ///< False if steps are left for the next pass: at a limit, or after a failed step.
  bool failed = false;   ///< At least one step failed.
  std::optional<core::Duration> retry_after;  ///< The longest wait that any server asked for.
  bool timed_out = false;                     ///< Steps were left because max_time had passed.
};

/// Executes plans. If a step fails, the rest of its group is still tried, unless the server answered kTooManyRequests or
/// kUnavailable. The later groups of its lane are not tried. Lanes take turns. At most max_in_flight steps are in flight. No
/// step begins after max_steps. After max_time, a step begins only if its Step::late allows it. The pass ends when all steps in
/// flight are answered. Of several steps with the same id, only the first is tried. The destructor cancels all passes and never
/// calls their `done`.
class Executor {
 public:
  Executor(core::Loop& loop, Target& target, PassLimits limits = {});
  ~Executor();
  /// Runs one pass. Passes of several keys can run at once. `done` is called once, in a later loop iteration. A step for which
  /// `withheld` returns true is left out, and so are the later groups of its lane. Steps that are left out do not make
  /// PassResult::complete false. run() calls `withheld` before it returns.
  void run(const Plan& plan, std::function<void(PassResult)> done, const std::function<bool(const Step&)>& withheld = {});
  /// Reads the facts that a plan needs, and passes them to `done`, by Need::id. If a read fails, its fact contains the error.
  void fetch(const std::vector<Need>& needs, std::function<void(Facts)> done);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace plan
