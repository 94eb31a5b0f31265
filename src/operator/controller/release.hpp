// Moves slurmctld to another release of Slurm. The new release must be able to read slurmctld's state. slurmdbd must move
// first, and all backups of the previous release must have ended.
#pragma once

#include <optional>

#include "operator/common/slinky.hpp"
#include "operator/controller/observed.hpp"
#include "operator/controller/rollout.hpp"
#include "slinky/status.hpp"

namespace op::controller {

/// True if the wanted release of slurmctld differs from the release that last ran. False if image tags do not show the
/// releases.
bool changes_release(const Observed& observed, const ConfigState& state);

/// A move to another release that has to wait.
struct HeldRelease {
  Observed observed;  ///< The facts, but with the present image as the wanted image. The rest of the plan uses these facts.
  Problem problem;    ///< Why the move must wait.
};
/// Returns nullopt if the move need not wait. If a user has scaled the StatefulSet to 0 and no pod exists, does not check
/// whether the wanted release can read the state: the user might have restored the state of another release. A slurmctld that
/// cannot read the state exits without changing it.
std::optional<HeldRelease> hold_release(const Observed& observed);

}  // namespace op::controller
