// Jobs that are starting. Before 26.11, slurmctld keeps the launch of a batch job that waits for a prolog or for its nodes only
// in memory: with PrologFlags=DeferBatch, with PrologSlurmctld, or while nodes are powered up. A reconfigure or restart loses
// the launch, and the job is shown as RUNNING, without its script, until somebody cancels it.
//
// So a reconfigure or restart waits while a job is starting. A restart also waits while Slurm does not answer. The wait ends
// after a minute: otherwise long prologs, or a Slurm that needs repair, would keep any configuration from being loaded. An
// event names the jobs that were starting then, and a condition names them while they run, because Slurm's REST API does not
// show whether their scripts run. The ConfigMap stores the wait and the affected jobs (rollout.hpp).
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

/// The longest wait of a reconfigure or restart.
inline constexpr core::Duration kPrologLimit{60000};
/// The period of checks whether the reconfigure or restart may continue.
inline constexpr core::Duration kPrologPoll{500};
/// The period of checks whether the affected jobs have ended.
inline constexpr core::Duration kDoubtPoll{10000};
/// The id of the steps that ask Slurm whether any job is starting. A job that is starting is no failure.
inline const plan::StepId kLookForStarting{"look for", "starting jobs"};
inline constexpr const char* kWaitsForProlog =
    "slurmctld is reconfigured or restarted when no job is starting or running its prolog, or after a minute";

/// Returns the jobs that are starting, from Slurm's last answer.
std::set<std::int64_t> starting_jobs(const Observed& observed);

/// Records since when a reconfigure or restart waits, which jobs are not waited for any longer, and which of these have ended.
/// `due`: slurmctld needs a reconfigure or restart. `loaded`: it has just accepted the offered content.
void note_prologs(const Observed& observed, bool due, bool loaded, ConfigState& next);

/// Returns how much longer the wait may last. nullopt: there is no wait, or it is over.
std::optional<core::Duration> wait_left(const Observed& observed, const ConfigState& state);

/// True if a reconfigure or restart has to wait.
bool held_back(const Observed& observed, const ConfigState& state);

/// Returns the step that asks Slurm once more just before the reconfigure or restart. nullopt: jobs are launched without delay,
/// the wait is over, or there is no RestApi through which to ask.
std::optional<plan::Step> look_for_prologs(const Observed& observed, const ConfigState& state);

/// Returns the event about jobs whose launch may be lost by the reconfigure or restart, if there are new ones.
std::optional<plan::Step> tell_cut_short(const Observed& observed, const ConfigState& now, const ConfigState& next);
/// Sets JobsInDoubt while jobs run whose launch may be lost.
void set_jobs_in_doubt(Conditions& conditions, const ConfigState& state);

}  // namespace op::controller
