// Places in the topology that a user's topology.yaml or topology.conf gives to workers by name. slurmctld assigns them when it
// reads its configuration, to the nodes that it has then. A worker that registers later has no place, and Slurm refuses
// multi-node jobs there until slurmctld reads the configuration again (24.11 and 26.05).
//
// So slurmctld is reconfigured once more for new workers. This changes only their places, so it yields to everything else: it
// waits while any job is starting (prologs.hpp), for other workers that come at the same time, and for a minute after the last
// such reconfigure.
//
// The ConfigMap stores `given_until`: workers that Slurm has had since before that time have their places (rollout.hpp). A
// worker's pod stores since when Slurm has had its node. The NodeSet writes this when it first sees the node
// (slinky/workers.hpp), so a later pod of the name has another time. A registered pod without a time counts as having its
// place: the record is an earlier pod's, or Slurm had the node before any file named nodes.
#pragma once

#include "operator/common/slinky.hpp"
#include "operator/controller/observed.hpp"
#include "operator/controller/rollout.hpp"
#include "plan/plan.hpp"
#include "slinky/status.hpp"

namespace op::controller {

/// The minimum time between two reconfigures that only assign places.
inline constexpr core::Duration kPlacesGap{60000};

/// Records that workers need places or have been given them.
void note_places(const Observed& observed, ConfigState& next, plan::Plan& plan);

/// Adds the step that assigns places when it is due. `state`: the stored state.
void add_places_step(const Observed& observed, const ConfigState& state, plan::Plan& plan);

/// Sets Placed if a file of the user's names nodes, cannot be parsed, or is of a kind that this slurmctld does not read.
/// `frozen`: Keyring::freezes.
void set_places_condition(Conditions& conditions, const Observed& observed, const ConfigState& state, bool frozen);

}  // namespace op::controller
