// Places that a user's topology.yaml or topology.conf gives to workers, by their names. slurmctld gives them when it reads its
// configuration, to the nodes that it has by then: a worker that registers later has no place, and Slurm refuses jobs of
// several nodes there, until slurmctld reads it again (24.11 and 26.05).
//
// So slurmctld is reconfigured once more for workers that have come. Nothing but their places changes by that, so it gives way
// to all else: it waits for as long as any job is starting (prologs.hpp), for others that come at the same time, and a minute
// since the last of its kind.
//
// Until when workers have been given their places stands in the ConfigMap (rollout.hpp). Since when Slurm has had a worker's
// node stands on its pod, written by its NodeSet when it sees the node first (cluster/workers.hpp): another pod of the same
// name has another time. A pod that says none, and was seen, has the record of the pod before it, with its place; or it was
// seen before any file named nodes, which `given_until` comes after.
#pragma once

#include "cluster/status.hpp"
#include "operator/controller/observed.hpp"
#include "operator/controller/rollout.hpp"
#include "plan/plan.hpp"

namespace op::controller {

/// Between two reconfigures for places alone.
inline constexpr core::Duration kPlacesGap{60000};

/// Notes that workers are to be given places, or have been.
void note_places(const Observed& observed, ConfigState& next, plan::Plan& plan);

/// Adds the step that gives places, when it is time. `state`: as it stands.
void add_places_step(const Observed& observed, const ConfigState& state, plan::Plan& plan);

/// There only where a file of the user's names nodes, or cannot be read. `frozen`: Keyring::freezes.
void set_places_condition(Conditions& conditions, const Observed& observed, const ConfigState& state, bool frozen);

}  // namespace op::controller
