// Jobs that are starting. Until 26.11 slurmctld keeps the launch of a batch job that waits for a prolog, or for its nodes, in
// its memory alone: with PrologFlags=DeferBatch, with PrologSlurmctld, or where nodes are powered up. A reconfigure or a
// restart loses it, and the job stands as RUNNING, without its script, until somebody cancels it.
//
// So both wait while a job is starting, and a restart while a Slurm that should tell does not: for a minute at most, or users
// of long prologs would never get a configuration loaded, and what would mend that Slurm would never come.
// Which jobs were starting then is told, by an event, and by a condition for as long as they run: whether their scripts do,
// Slurm's REST API does not tell. What is waited for, and who was cut short, stands in the ConfigMap (rollout.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "cluster/status.hpp"
#include "operator/controller/observed.hpp"
#include "operator/controller/rollout.hpp"
#include "plan/plan.hpp"

namespace op::controller {

/// How long a reconfigure or restart waits at most.
inline constexpr core::Duration kPrologLimit{60000};
/// How often is looked whether it may go on.
inline constexpr core::Duration kPrologPoll{500};
/// How often is looked whether those that were cut short have ended.
inline constexpr core::Duration kDoubtPoll{10000};
/// Of steps that ask Slurm itself whether any job is starting. That one is, is nothing wrong.
inline const plan::StepId kLookForStarting{"look for", "starting jobs"};
inline constexpr const char* kWaitsForProlog =
    "slurmctld is reconfigured or restarted when no job is starting or running its prolog, or after a minute";

/// By what Slurm last said.
std::set<std::int64_t> starting_jobs(const Observed& observed);

/// Notes since when is waited, whom it is not waited for any longer, and who of these has ended. `due`: slurmctld is to be
/// reconfigured or restarted. `loaded`: it has just accepted what is offered.
void note_prologs(const Observed& observed, bool due, bool loaded, ConfigState& next);

/// How long one that waits will wait at most; nullopt: none does, or no longer.
std::optional<core::Duration> wait_left(const Observed& observed, const ConfigState& state);

/// A reconfigure or restart is to wait.
bool held_back(const Observed& observed, const ConfigState& state);

/// Asks Slurm itself once more, right before; nothing where jobs start at once, or where it is not waited any longer.
std::optional<plan::Step> look_for_prologs(const Observed& observed, const ConfigState& state);

/// The event that tells of jobs that are about to be cut short, if there are new ones.
std::optional<plan::Step> tell_cut_short(const Observed& observed, const ConfigState& now, const ConfigState& next);
/// There only while such jobs run.
void set_jobs_in_doubt(Conditions& conditions, const ConfigState& state);

}  // namespace op::controller
