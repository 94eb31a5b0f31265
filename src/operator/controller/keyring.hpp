// Decides when the keyring takes over new data of the user's Secret. The keyring is the copy of the auth/slurm key that daemons
// mount.
//
// If slurmctld and slurmds have different keys, they reject each other's messages, and jobs on these slurmds are lost. A
// kubelet replaces a mounted file when its Secret changes, and the daemons read the file at the next reconfigure or start. So
// new data in the user's Secret take effect step by step (rotation.hpp). If a rotation is not possible, the keyring retains the
// old data until no running daemon depends on them. Then one pass changes the keyring and restarts slurmctld with a new pod
// template.
//
// The pod template has the digest of the key in force: the digest that the user's Secret had when its data were copied. The
// keyring also has a hash of its own data, so that the operator notices when somebody edits the keyring. After such an edit,
// running daemons have the key in force only in memory, so they must not read the file again.
#pragma once

#include <optional>
#include <string>

#include "operator/common/slinky.hpp"
#include "operator/controller/observed.hpp"
#include "operator/controller/rotation.hpp"
#include "plan/plan.hpp"
#include "slinky/status.hpp"

namespace op::controller {

struct Keyring {
  /// The step that creates a missing keyring, restores an edited keyring to the key in force, adds missing metadata, or begins
  /// or continues a rotation. With this step, no daemon loses its connection.
  std::optional<plan::Step> mend;
  /// The step that changes the keyring to another key. slurmctld must be restarted right after this step.
  std::optional<plan::Step> renew;
  std::string digest;  ///< Digest of the key that daemons mount (after `renew`, if it is set). "": no key to mount yet.
  std::optional<Problem> problem;    ///< What is wrong. The message does not list the daemons, because their number changes.
  std::string waits_for;             ///< What must end before another key is used (daemons, jobs), and what to do. "": nothing.
  std::string cannot_rotate;         ///< Why the key cannot be rotated while daemons run. "": nothing to report.
  std::optional<Rotation> rotation;  ///< The rotation under way, if any.
  /// True if slurmctld must not reconfigure or restart, because daemons would then load data other than the key in force.
  bool freezes = false;
};

/// Returns the recipe that restores the Secret of a generated key from the keyring. Null: the keyring does not have this key.
core::Json restored_key(const Observed& observed);

/// Returns the digest of the key that a slurmctld uses. `made_with`: the annotation of its pod or pod template.
std::string key_by(const Observed& observed, const std::string& made_with);
/// Returns the digest that slurmctld's pod template must have while the key with `digest` is in force. After a rotation that
/// did not replace the pod, this is the digest of an earlier key.
std::string made_with_key(const Observed& observed, const std::string& digest);
/// Returns the digest of the earlier key if slurmctld's pod template has it. Returns "" if the template has the digest of the
/// present key.
std::string made_with_key(const Observed& observed);

/// Plans the keyring. `state_at_stake`: a restart would lose slurmctld's state and with it jobs, so slurmctld must not restart.
Keyring plan_keyring(const Observed& observed, bool state_at_stake);

}  // namespace op::controller
