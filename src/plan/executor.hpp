// Carries plans out. Nothing else writes, but for the runtime's own Lease and events.
//
// The executor is a state machine on the loop: it hands steps to a Target, keeps the order of lanes and groups, bounds what is
// in flight, and ends a pass after max_steps or max_time. It gives each step's outcome back, and the gates that its key must
// wait for.
#pragma once

#include <functional>
#include <memory>
#include <typeindex>
#include <unordered_map>
#include <vector>

#include "core/loop.hpp"
#include "plan/plan.hpp"

namespace plan {

/// Closed until the caches show a write. Asked again whenever a cache changes.
class Gate {
 public:
  virtual ~Gate() = default;
  [[nodiscard]] virtual bool open() const = 0;
  /// It was closed for too long: asks live what became of the write. No call comes back: ask open(). False: nobody can be
  /// asked, so that nothing should wait for it any longer.
  [[nodiscard]] virtual bool settle() const { return false; }
  [[nodiscard]] virtual std::string describe() const = 0;
};
using GatePtr = std::shared_ptr<const Gate>;

struct ActResult {
  core::Result<core::Json> value;  ///< The reply, for needs; a step's later steps never see it.
  std::vector<GatePtr> gates;      ///< Also given with kUnknownOutcome: opens when a later consistent read has settled it.
};

/// Where acts go: kube::Target, slurm::Target, or a router over them.
class Target {
 public:
  using Done = std::function<void(ActResult)>;
  virtual ~Target() = default;
  /// True when this target knows acts of this kind.
  [[nodiscard]] virtual bool handles(const Act& act) const { return handlers_.contains(typeid(act)); }
  /// Carries the act out and calls `done` exactly once, later. Requires that it handles the act.
  virtual void execute(ActPtr act, Done done);

 protected:
  /// Says how acts of one kind are carried out; each kind once, before the first of them.
  template <class Kind>
  void carries_out(std::function<void(std::shared_ptr<const Kind>, Done)> handler) {
    handlers_[typeid(Kind)] = [handler = std::move(handler)](ActPtr act, Done done) {
      handler(std::static_pointer_cast<const Kind>(std::move(act)), std::move(done));
    };
  }

 private:
  std::unordered_map<std::type_index, std::function<void(ActPtr, Done)>> handlers_;
};

/// Hands each act to the first target that handles it.
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
  Outcomes outcomes;  ///< Of the steps tried in this pass; count 1 (the engine adds up).
  std::vector<GatePtr> gates;
  bool complete = true;  ///< False when steps were left for the next pass (limits, or a failed group before them).
  bool failed = false;   ///< At least one step failed.
  std::optional<core::Duration> retry_after;  ///< The longest wait any server asked for.
  bool timed_out = false;                     ///< Steps were left because max_time was over.
};

/// A failed step ends its lane: the rest of its group is still tried (unless the server answered kTooManyRequests or
/// kUnavailable), later groups are not. Lanes share max_in_flight in turns. After max_steps nothing more is begun, after
/// max_time only what may be late (Step::late); the pass ends when what is in flight was answered. A step whose id came
/// before in the same plan is not tried again. Destroying the executor withdraws its passes: their `done` is never called.
class Executor {
 public:
  Executor(core::Loop& loop, Target& target, PassLimits limits = {});
  ~Executor();
  /// Runs one pass; several keys may be in flight at once. `done` is called once, later. Steps for which `withheld`, asked at
  /// once, is true are left out, and so are the later groups of their lanes; both do not count as left for the next pass.
  void run(const Plan& plan, std::function<void(PassResult)> done, const std::function<bool(const Step&)>& withheld = {});
  /// Fetches the facts a plan needs.
  void fetch(const std::vector<Need>& needs, std::function<void(Facts)> done);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace plan
