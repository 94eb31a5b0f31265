// Protects jobs that are starting: see slurm/rollout/rollout.hpp.
//
// A reconfigure or restart waits while a job is starting. A restart also waits while Slurm does not answer. The wait ends after
// a minute: otherwise long prologs, or a Slurm that needs repair, would prevent each change of the configuration. An event
// names the jobs that were starting when the wait ended. A condition names these jobs while they run, because Slurm's REST API
// does not show whether their scripts run. The ConfigMap stores the wait and the affected jobs (rollout.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "operator/common/slinky.hpp"
#include "operator/controller/observed.hpp"
#include "operator/controller/rollout.hpp"
#include "plan/plan.hpp"
#include "slinky/status.hpp"

namespace op::controller {

using slurm::rollout::kLookForStarting;
using slurm::rollout::kPrologLimit;
using slurm::rollout::kPrologPoll;
using slurm::rollout::starting_jobs;
/// The period of checks whether the affected jobs have ended.
inline constexpr core::Duration kDoubtPoll{10000};
inline constexpr const char* kWaitsForProlog =
    "slurmctld is reconfigured or restarted when no job is starting or running its prolog, or after a minute";

/// Records in `next` since when a reconfigure or restart waits, which jobs were starting when the wait ended, and which of them
/// ended. `due`: slurmctld needs a reconfigure or restart. `loaded`: it just accepted the offered content.
void note_prologs(const Observed& observed, bool due, bool loaded, ConfigState& next);

/// Returns the time that is left of the wait. nullopt: nothing waits, or the wait is over.
std::optional<core::Duration> wait_left(const Observed& observed, const ConfigState& state);

/// True if a reconfigure or restart has to wait.
bool held_back(const Observed& observed, const ConfigState& state);

/// Returns the step that asks Slurm, just before the reconfigure or restart, whether a job is starting. nullopt: jobs are
/// launched without delay, the wait is over, or there is no RestApi through which to ask.
std::optional<plan::Step> look_for_prologs(const Observed& observed, const ConfigState& state);

/// Returns the event about jobs whose launch the reconfigure or restart may lose. nullopt: there are no new ones.
std::optional<plan::Step> tell_cut_short(const Observed& observed, const ConfigState& now, const ConfigState& next);
/// Sets the condition JobsInDoubt while jobs run whose launch may be lost.
void set_jobs_in_doubt(Conditions& conditions, const ConfigState& state);

}  // namespace op::controller
