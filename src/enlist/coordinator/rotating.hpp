// The decisions about requests of administrators to begin, acknowledge or abandon a rotation of the auth key, as changes of the
// store. No I/O.
#pragma once

#include <set>
#include <string>

#include "core/clock.hpp"
#include "core/json.hpp"
#include "core/result.hpp"
#include "enlist/rules/rotation.hpp"
#include "enlist/store/store.hpp"

namespace enlist {

/// Begins a rotation. `also`: further hosts that hold the key. `lifetime`: see Rotation. Errors: kConflict (a rotation runs),
/// kInvalid (a name in `also`, `kid`, or the stored state), and the error of `keys`.
[[nodiscard]] core::Result<Changes> begin_rotation(const Contents& now, const core::Result<KeySet>& keys,
                                                   const std::string& kid, const std::set<std::string>& also,
                                                   core::Duration lifetime, core::WallTime time);
/// Records that these hosts have loaded the key file of `phase`. `status`: the result of rotation_status(). Errors: kConflict
/// (no rotation runs, or it is in another phase), kNotFound (the rotation does not wait for one of these hosts now).
[[nodiscard]] core::Result<Changes> acknowledge(const Contents& now, const core::Json& status,
                                                const std::set<std::string>& hosts, const std::string& phase);
/// Makes the rotation go on without these nodes. Errors: kConflict (no rotation runs, or must_wait_for() names a cause),
/// kNotFound.
[[nodiscard]] core::Result<Changes> go_without(const Contents& now, const slurm::SnapshotPtr& slurm,
                                               const std::set<std::string>& nodes);
/// Abandons the rotation: see abandoned(). Errors: those of abandoned().
[[nodiscard]] core::Result<Changes> abandon_rotation(const Contents& now, const core::Result<KeySet>& keys,
                                                     core::WallTime time);

}  // namespace enlist
