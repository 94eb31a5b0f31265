// A user's topology.yaml or topology.conf can name workers, which gives them places in the topology. slurmctld assigns places
// when it reads its configuration, but only to nodes that it already has. A worker that registers later has no place, and Slurm
// refuses multi-node jobs on this worker until slurmctld reads the configuration again (24.11 and 26.05).
//
// So slurmctld is reconfigured once more for new workers. That reconfigure is not urgent: it waits while any job is starting
// (prologs.hpp), while other workers are starting, and for a minute after the previous reconfigure of this kind.
//
// The ConfigMap stores a time, `given_until`: workers whose nodes Slurm had before that time have their places (rollout.hpp). A
// condition on a worker's pod stores since when Slurm has had the node. The NodeSet controller sets this condition when it
// first sees the node (slinky/workers.hpp), so a new pod of the same name has a new time. A registered pod without the
// condition counts as placed: its node record is from an earlier pod, or Slurm had the node before any file named nodes.
#pragma once

#include "operator/common/slinky.hpp"
#include "operator/controller/observed.hpp"
#include "operator/controller/rollout.hpp"
#include "plan/plan.hpp"
#include "slinky/status.hpp"

namespace op::controller {

/// The minimum time between two reconfigures that only assign places.
inline constexpr core::Duration kPlacesGap{60000};

/// Records in `next` that workers need places, or that slurmctld has assigned them.
void note_places(const Observed& observed, ConfigState& next, plan::Plan& plan);

/// Adds the step that assigns places when it is due. `state`: the stored state.
void add_places_step(const Observed& observed, const ConfigState& state, plan::Plan& plan);

/// Sets the condition Placed if a topology file of the user names nodes, cannot be parsed, or has a format that this release of
/// slurmctld does not read. `frozen`: Keyring::freezes.
void set_places_condition(Conditions& conditions, const Observed& observed, const ConfigState& state, bool frozen);

}  // namespace op::controller
