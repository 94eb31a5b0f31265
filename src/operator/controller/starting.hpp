// Workers that start while slurmctld loads another configuration. A slurmd fetches its configuration when it starts. If
// slurmctld is reconfigured after that, and before the slurmd has registered, slurmctld does not know whom to tell: that slurmd
// keeps the former configuration until the next reconfigure, and slurmctld only logs that it has a "different slurm.conf"
// (seen with 24.11 and 26.05).
//
// Nor do all slurmds get it from a slurmctld that restarts with it: what it sends then can be lost, and is not sent again (seen
// with 24.11).
//
// So slurmctld loads the same configuration once more when the workers that were starting have registered, or after a while.
// That this is due stands in the ConfigMap (rollout.hpp). The second load changes nothing, so workers that start meanwhile miss
// nothing.
#pragma once

#include "operator/controller/observed.hpp"
#include "operator/controller/rollout.hpp"
#include "plan/plan.hpp"

namespace op::controller {

/// How long is waited for workers to register: one whose image cannot be pulled never does.
inline constexpr core::Duration kStartPatience{30000};

/// The step by which slurmctld loads once more what it loaded at that time.
plan::StepId reload_id(core::WallTime noted);

/// Notes that workers or slurmctld are starting while another configuration is on its way, or that slurmctld has loaded it once
/// more since.
void note_starting(const Observed& observed, ConfigState& next);

/// slurmctld runs with what is offered, and is to load it once more now.
bool needs_reload(const Observed& observed, const ConfigState& state);

/// Adds the step that makes slurmctld load its configuration once more, when it is time. `state`: as it stands.
void add_reload_step(const Observed& observed, const ConfigState& state, plan::Plan& plan);

}  // namespace op::controller
