// Reloads the configuration for workers that start while slurmctld loads another configuration. A slurmd fetches its
// configuration when it starts. If slurmctld is reconfigured before this slurmd has registered, slurmctld does not notify the
// slurmd. The slurmd keeps the old configuration until the next reconfigure, and slurmctld only logs a "different slurm.conf"
// (seen with 24.11 and 26.05).
//
// A restart has a similar effect: not all slurmds get the new configuration, because a message of slurmctld can be lost and is
// not sent again (seen with 24.11).
//
// So slurmctld loads its configuration a second time when the workers that were starting have registered, or after
// kStartPatience. The ConfigMap stores that this load is due (rollout.hpp). The second load changes nothing in the
// configuration, so it has no effect on workers that start during it.
#pragma once

#include "operator/controller/observed.hpp"
#include "operator/controller/rollout.hpp"
#include "plan/plan.hpp"

namespace op::controller {

/// The longest wait for workers to register. The wait is limited because a worker whose image cannot be pulled never registers.
inline constexpr core::Duration kStartPatience{30000};

/// Returns the id of the step that makes slurmctld load its configuration a second time. `noted`: the time of the first load.
plan::StepId reload_id(core::WallTime noted);

/// Records in `next` that workers or slurmctld are starting while slurmctld loads another configuration, or that slurmctld has
/// loaded that configuration a second time.
void note_starting(const Observed& observed, ConfigState& next);

/// True if slurmctld runs with the offered content and must now load it a second time.
bool needs_reload(const Observed& observed, const ConfigState& state);

/// Adds the step that makes slurmctld load its configuration once more when it is due. `state`: the stored state.
void add_reload_step(const Observed& observed, const ConfigState& state, plan::Plan& plan);

}  // namespace op::controller
