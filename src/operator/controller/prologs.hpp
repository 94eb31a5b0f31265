// Protects jobs that are starting: see slurm/rollout/rollout.hpp.
//
// A reconfigure or restart waits while a job is starting. A restart also waits while Slurm does not answer. The wait ends after
// a minute: otherwise long prologs, or a Slurm that needs repair, would prevent each change of the configuration. An event
// names the jobs that were starting when the wait ended. A condition names these jobs as long as they run, because Slurm's REST
// API does not show whether the jobs' scripts run. The ConfigMap stores the wait and the affected jobs (rollout.hpp).
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
/// The time between two checks whether the affected jobs have ended.
inline constexpr core::Duration kDoubtPoll{10000};
inline constexpr const char* kWaitsForProlog =
    "slurmctld is reconfigured or restarted when no job is starting or running its prolog, or after a minute";

/// Records in `next` when the wait of a reconfigure or restart began, which jobs were starting when the wait ended, and which
/// of these jobs have ended. `due`: slurmctld needs a reconfigure or restart. `loaded`: slurmctld has just accepted the offered
/// content.
void note_prologs(const Observed& observed, bool due, bool loaded, ConfigState& next);

/// Returns how long the wait still lasts. nullopt: no reconfigure or restart waits, or the wait is over.
std::optional<core::Duration> wait_left(const Observed& observed, const ConfigState& state);

/// True if a reconfigure or restart has to wait.
bool held_back(const Observed& observed, const ConfigState& state);

/// Returns the step that asks Slurm, just before the reconfigure or restart, whether a job is starting. nullopt: slurm.conf
/// has no setting that can delay the start of a job, the wait is over, or there is no RestApi through which to ask.
std::optional<plan::Step> look_for_prologs(const Observed& observed, const ConfigState& state);

/// Returns the event that names jobs whose launch the reconfigure or restart might lose. nullopt: `next` records no new jobs.
std::optional<plan::Step> tell_cut_short(const Observed& observed, const ConfigState& now, const ConfigState& next);
/// Sets the condition JobsInDoubt while jobs run whose launch might have been lost.
void set_jobs_in_doubt(Conditions& conditions, const ConfigState& state);

}  // namespace op::controller
