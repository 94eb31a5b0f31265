#include "operator/controller/starting.hpp"

#include <algorithm>

#include "operator/controller/prologs.hpp"
#include "slurm/acts.hpp"

namespace op::controller {
namespace {

/// The minimum time between two writes of starting_at during one wait, because each write delays the reconfigure. The second
/// load also waits for pods that were created within this time after such a write.
constexpr core::Duration kNoteGap{10000};
/// The time between two checks whether workers have registered. No event wakes the Controller when a worker registers.
constexpr core::Duration kPoll{1000};

/// True if the second load is done, or if it is not tried again after a refusal or a lost reply. After a refusal, slurmctld
/// stays with the loaded configuration. After a lost reply, the next reply would also be lost while slurmctld is slow.
bool reloaded(const Observed& observed, core::WallTime noted) {
  const auto found = observed.context.outcomes.find(reload_id(noted));
  if (found == observed.context.outcomes.end()) return false;
  const plan::Outcome& outcome = found->second;
  const bool lost = outcome.error && outcome.error->code == core::ErrorCode::kUnknownOutcome;
  return outcome.state == plan::Outcome::State::kDone || refused(&outcome) || lost;
}

/// Returns since when the running slurmctld is ready. nullopt: slurmctld is not ready.
std::optional<core::WallTime> ready_since(const Observed& observed) {
  for (const kube::PodPtr& pod : observed.pods) {
    if (!pod->meta.terminating() && pod->ready()) return pod->ready_since.value_or(pod->meta.created);
  }
  return {};
}

bool awaits_workers(const Observed& observed, core::WallTime noted) {
  const core::Duration since = observed.context.now - std::max(noted, ready_since(observed).value_or(noted));
  // If the clock was set back, do not wait.
  if (since < core::Duration{0} || since >= kStartPatience) return false;
  return std::ranges::any_of(observed.starting, [&](core::WallTime created) { return created <= noted + kNoteGap; });
}

/// True if the second load is necessary, slurmctld runs, and Slurm reports that slurmctld has loaded the offered content.
bool reload_is_due(const Observed& observed, const ConfigState& state) {
  return state.starting_at && !reloaded(observed, *state.starting_at) && runs(observed) &&
         loaded_config_hash(observed) == state.offered_hash;
}

}  // namespace

plan::StepId reload_id(core::WallTime noted) {
  return kReconfigure.of("again for " + core::format_rfc3339(noted));
}

void note_starting(const Observed& observed, ConfigState& next) {
  const core::WallTime now = core::whole_seconds(observed.context.now);
  if (next.starting_at && reloaded(observed, *next.starting_at)) next.starting_at.reset();
  const bool on_its_way = next.exists() && !next.accepted_hash.empty() && next.offered_hash != next.accepted_hash &&
                          next.offered_hash != next.refused_hash;
  if (!on_its_way || observed.workers.empty() || observed.restapis.empty()) return;
  // Until slurmctld is ready and its nodes are read, it is unknown which slurmds have the new configuration.
  const bool known = ready_since(observed) && observed.snapshot && observed.snapshot->complete();
  if (known && observed.starting.empty()) return;
  const bool old = next.starting_at && (*next.starting_at > now || (known && now - *next.starting_at >= kNoteGap));
  if (!next.starting_at || old) next.starting_at = now;
}

bool needs_reload(const Observed& observed, const ConfigState& state) {
  return reload_is_due(observed, state) && !awaits_workers(observed, *state.starting_at);
}

void add_reload_step(const Observed& observed, const ConfigState& state, plan::Plan& plan) {
  if (!reload_is_due(observed, state)) return;
  if (awaits_workers(observed, *state.starting_at))
    return plan.wake_after(kPoll, "workers that were starting may have registered");
  if (held_back(observed, state)) return plan.wake_after(kPrologPoll, kWaitsForProlog);
  plan.lane("load")
      .add(look_for_prologs(observed, state))
      .then()
      .add({reload_id(*state.starting_at), "workers that were starting may have missed the configuration",
            slurm::reconfigure(observed.cluster)});
}

}  // namespace op::controller
