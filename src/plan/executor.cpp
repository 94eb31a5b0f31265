#include "plan/executor.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "core/retry.hpp"
#include "plan/ledger.hpp"

namespace plan {

void Target::execute(ActPtr act, Done done) {
  const Act& kind = *act;
  handlers_.at(typeid(kind))(std::move(act), std::move(done));
}

bool Router::handles(const Act& act) const {
  return std::any_of(targets_.begin(), targets_.end(), [&](const Target* target) { return target->handles(act); });
}

void Router::execute(ActPtr act, Done done) {
  for (Target* target : targets_) {
    if (target->handles(*act)) return target->execute(std::move(act), std::move(done));
  }
  done({core::fail(core::ErrorCode::kUnsupported, "no target handles this act: " + act->describe().dump()), {}});
}

namespace {

/// The progress of one lane.
struct LaneRun {
  std::vector<std::vector<Step>> groups;
  std::size_t group = 0;
  std::size_t next = 0;        ///< The next step of the group to start.
  std::size_t in_flight = 0;   ///< Unanswered steps of the group.
  core::MonoTime group_begun;  ///< When a group of this lane last began in this pass.
  bool failed = false;         ///< A step failed: later groups of the lane do not begin.
  bool refused = false;        ///< The server accepts no requests now: the rest of the group does not begin either.

  [[nodiscard]] bool finished() const { return group >= groups.size(); }
  [[nodiscard]] bool can_start() const { return !refused && !finished() && next < groups[group].size(); }
  [[nodiscard]] core::Duration allowance() const {
    return group > 0 && next == 0 ? groups[group].front().late : core::Duration{0};
  }
};

/// The progress of one pass through the lanes of its plan.
struct PassRun {
  std::vector<LaneRun> lanes;
  std::function<void(PassResult)> done;
  PassResult result;
  core::MonoTime begun;
  std::size_t started = 0;
  std::size_t in_flight = 0;
  bool pumping = false;
  bool finished = false;
  std::set<StepId> tried;
};

struct Fetch {
  Facts facts;
  std::vector<Need> waiting;  ///< Needs that are not started yet, in reverse order.
  std::size_t in_flight = 0;
  std::function<void(Facts)> done;
};

}  // namespace

struct Executor::Impl : std::enable_shared_from_this<Executor::Impl> {
  Impl(core::Loop& l, Target& t, PassLimits p) : loop(l), target(t), limits(p) {}

  core::Loop& loop;
  Target& target;
  PassLimits limits;

  using PassPtr = std::shared_ptr<PassRun>;
  using FetchPtr = std::shared_ptr<Fetch>;

  /// Passes an act to the target. Drops a second answer, and any answer after the executor is destroyed.
  void execute(const ActPtr& act, std::function<void(Impl&, ActResult)> then) {
    auto answered = std::make_shared<bool>(false);
    auto receive = [weak = weak_from_this(), answered, then = std::move(then)](ActResult result) {
      const auto self = weak.lock();
      if (!self || *answered) return;
      *answered = true;
      then(*self, std::move(result));
    };
    if (!act || !target.handles(*act)) {
      const std::string what = act ? act->describe().dump() : "no act";
      loop.after(core::Duration{0}, [receive, what] {
        receive({core::fail(core::ErrorCode::kUnsupported, "no target handles this act: " + what), {}});
      });
      return;
    }
    target.execute(act, std::move(receive));
  }

  void start_pass(const Plan& plan, std::function<void(PassResult)> done, const std::function<bool(const Step&)>& withheld) {
    auto pass = std::make_shared<PassRun>();
    for (const auto& [name, lane] : plan.lanes()) {
      LaneRun run;
      for (const auto& group : lane.groups()) {
        std::vector<Step> due = group;
        if (withheld) std::erase_if(due, withheld);
        const bool whole = due.size() == group.size();
        if (!due.empty()) run.groups.push_back(std::move(due));
        if (!whole) break;
      }
      if (!run.groups.empty()) pass->lanes.push_back(std::move(run));
    }
    pass->done = std::move(done);
    pass->begun = loop.clock().mono();
    // Starts in a later loop iteration, so that `done` is never called from inside run().
    loop.after(core::Duration{0}, [weak = weak_from_this(), pass] {
      if (const auto self = weak.lock()) self->pump(pass);
    });
  }

  void pump(const PassPtr& pass) {
    if (pass->pumping || pass->finished) return;
    pass->pumping = true;
    // Starts one step of each lane in rotation, so that a long lane does not delay the other lanes.
    for (bool moved = true; moved;) {
      moved = false;
      for (LaneRun& lane : pass->lanes) {
        advance(lane);
        if (!lane.can_start()) continue;
        const core::MonoTime now = loop.clock().mono();
        const bool late = now - pass->begun >= limits.max_time && now - lane.group_begun >= lane.allowance();
        pass->result.timed_out = pass->result.timed_out || late;
        if (late || pass->started >= limits.max_steps || pass->in_flight >= limits.max_in_flight) continue;
        start_step(pass, lane);
        moved = true;
      }
    }
    pass->pumping = false;
    if (pass->in_flight == 0) finish(pass);
  }

  static void advance(LaneRun& lane) {
    if (lane.failed || lane.finished()) return;
    if (lane.next == lane.groups[lane.group].size() && lane.in_flight == 0) {
      ++lane.group;
      lane.next = 0;
    }
  }

  void start_step(const PassPtr& pass, LaneRun& lane) {
    const Step step = lane.groups[lane.group][lane.next++];
    if (lane.next == 1) lane.group_begun = loop.clock().mono();
    // If a plan has two steps with the same id, only the first is tried.
    if (!pass->tried.insert(step.id).second) return;
    ++lane.in_flight;
    ++pass->in_flight;
    ++pass->started;
    const std::size_t index = static_cast<std::size_t>(&lane - pass->lanes.data());
    execute(step.act, [pass, index, id = step.id](Impl& self, ActResult result) {
      self.finish_step(pass, pass->lanes[index], id, std::move(result));
    });
  }

  void finish_step(const PassPtr& pass, LaneRun& lane, const StepId& id, ActResult result) {
    --lane.in_flight;
    --pass->in_flight;
    const core::Result<void> ended = result.value ? core::Result<void>() : std::unexpected(result.value.error());
    Outcome outcome = tried(ended, loop.clock().mono());
    if (!result.value) {
      lane.failed = true;
      // Steps of one group do not depend on each other, so the other steps still start, unless the server accepts no requests.
      lane.refused = lane.refused || core::retry_of(outcome.error->code) == core::Retry::kLater;
      pass->result.failed = true;
      const auto& wait = result.value.error().retry_after;
      if (wait && (!pass->result.retry_after || *pass->result.retry_after < *wait)) pass->result.retry_after = *wait;
    }
    pass->result.outcomes[id] = std::move(outcome);
    pass->result.gates.insert(pass->result.gates.end(), result.gates.begin(), result.gates.end());
    pump(pass);
  }

  void finish(const PassPtr& pass) {
    pass->finished = true;
    pass->result.complete = std::all_of(pass->lanes.begin(), pass->lanes.end(), [](const LaneRun& lane) {
      return lane.finished() || (lane.group + 1 == lane.groups.size() && lane.next == lane.groups[lane.group].size());
    });
    const auto done = std::move(pass->done);
    done(std::move(pass->result));
  }

  void start_fetch(const std::vector<Need>& needs, std::function<void(Facts)> done) {
    auto fetch = std::make_shared<Fetch>();
    fetch->waiting.assign(needs.rbegin(), needs.rend());
    fetch->done = std::move(done);
    loop.after(core::Duration{0}, [weak = weak_from_this(), fetch] {
      if (const auto self = weak.lock()) self->pump_fetch(fetch);
    });
  }

  void pump_fetch(const FetchPtr& fetch) {
    while (!fetch->waiting.empty() && fetch->in_flight < limits.max_in_flight) {
      const Need need = std::move(fetch->waiting.back());
      fetch->waiting.pop_back();
      ++fetch->in_flight;
      const core::MonoTime asked = loop.clock().mono();
      execute(need.query, [fetch, asked, id = need.id](Impl& self, ActResult result) {
        --fetch->in_flight;
        fetch->facts.insert_or_assign(id, Fact{std::move(result.value), asked});
        self.pump_fetch(fetch);
      });
    }
    if (fetch->waiting.empty() && fetch->in_flight == 0 && fetch->done) {
      const auto done = std::move(fetch->done);
      fetch->done = nullptr;
      done(std::move(fetch->facts));
    }
  }
};

Executor::Executor(core::Loop& loop, Target& target, PassLimits limits) : impl_(new Impl(loop, target, limits)) {}
Executor::~Executor() = default;
void Executor::run(const Plan& plan, std::function<void(PassResult)> done, const std::function<bool(const Step&)>& withheld) {
  impl_->start_pass(plan, std::move(done), withheld);
}
void Executor::fetch(const std::vector<Need>& needs, std::function<void(Facts)> done) {
  impl_->start_fetch(needs, std::move(done));
}

}  // namespace plan
