// Another release of Slurm for slurmctld: only one that can read the state, never beside a backup of
// the former release, and after slurmdbd.
#pragma once

#include <optional>

#include "cluster/status.hpp"
#include "operator/controller/observed.hpp"
#include "operator/controller/rollout.hpp"

namespace op::controller {

/// slurmctld is to be of another release of Slurm than the one that was last up. Not where the tags of images do not tell.
bool changes_release(const Observed& observed, const ConfigState& state);

/// slurmctld stays of the release that it has.
struct HeldRelease {
  Observed observed;  ///< As if the image were wanted that it has: all else is planned as ever.
  Problem problem;    ///< Why.
};
/// nullopt: it may be of the release that is wanted. Also where slurmctld has no pod: then somebody may have restored the state
/// of an earlier release, and a slurmctld that cannot read what it finds ends without touching it.
std::optional<HeldRelease> hold_release(const Observed& observed);

}  // namespace op::controller
