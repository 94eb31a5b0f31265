// Moves slurmctld to another release of Slurm. That release must be able to read slurmctld's state, slurmdbd must move first,
// and no backup of the previous release may run.
#pragma once

#include <optional>

#include "operator/common/slinky.hpp"
#include "operator/controller/observed.hpp"
#include "operator/controller/rollout.hpp"
#include "slinky/status.hpp"

namespace op::controller {

/// True if the wanted release of slurmctld is not the one that last ran. False if image tags do not show the releases.
bool changes_release(const Observed& observed, const ConfigState& state);

/// A move to another release that may not happen yet.
struct HeldRelease {
  Observed observed;  ///< The facts with the present image as the wanted image. The rest of the plan is made from these facts.
  Problem problem;    ///< Why the move must wait.
};
/// Returns nullopt if the wanted release may be used. Does not check whether that release can read the state if a user has
/// scaled the StatefulSet to 0 and there is no pod: the user may have restored the state of another release, and a slurmctld
/// that cannot read the state exits without changing it.
std::optional<HeldRelease> hold_release(const Observed& observed);

}  // namespace op::controller
