// What administrators do to the rotation of the auth key, as changes of the store. No I/O.
#pragma once

#include <set>
#include <string>

#include "core/clock.hpp"
#include "core/json.hpp"
#include "core/result.hpp"
#include "enlist/rules/rotation.hpp"
#include "enlist/store/store.hpp"

namespace enlist {

/// Begins a rotation. `also`: further hosts that hold the key. `lifetime`: see Rotation. Errors: kConflict (one runs), kInvalid
/// (a name, or the keys), that of `keys`.
[[nodiscard]] core::Result<Changes> begin_rotation(const Contents& now, const core::Result<KeySet>& keys,
                                                   const std::string& kid, const std::set<std::string>& also,
                                                   core::Duration lifetime, core::WallTime time);
/// Notes that these hosts have loaded the file of `phase`. `status`: that of rotation_status(). Errors: kConflict (none runs,
/// or it is in another phase), kNotFound (the host is not waited for, or the file of the phase is not there yet).
[[nodiscard]] core::Result<Changes> acknowledge(const Contents& now, const core::Json& status,
                                                const std::set<std::string>& hosts, const std::string& phase);
/// Lets the rotation go on without these nodes. Errors: kConflict (none runs, or a node has jobs, or may get some), kNotFound.
[[nodiscard]] core::Result<Changes> go_without(const Contents& now, const slurm::SnapshotPtr& slurm,
                                               const std::set<std::string>& nodes);
/// Takes the rotation back. Errors: those of abandoned().
[[nodiscard]] core::Result<Changes> abandon_rotation(const Contents& now, const core::Result<KeySet>& keys,
                                                     core::WallTime time);

}  // namespace enlist
