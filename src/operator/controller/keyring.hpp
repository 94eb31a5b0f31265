// Decides when the keyring, the copy of the auth/slurm key that daemons mount, follows the Secret that the user names.
//
// slurmctld and slurmds with different keys do not understand each other, and the jobs between them are lost. A kubelet
// replaces a mounted file when its Secret changes, and both daemons read it at the next reconfigure or start. So new data in
// the user's Secret take effect step by step (rotation.hpp). If that is not possible, they wait until no daemon would be cut
// off. Then one pass changes the keyring and restarts slurmctld with a new pod template.
//
// The pod template has the digest of the mounted key, which shows which key is in force: it is the digest of the user's Secret
// when it was copied. The keyring also has a hash of its own data, which reveals an edit. After an edit, running daemons have
// their key only in memory and must not read the file again.
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
  /// Creates a missing copy, restores an edited one with the key in force, adds missing metadata, or begins or continues a
  /// rotation. No daemon loses its connection.
  std::optional<plan::Step> mend;
  /// Brings another key into force. Must be followed at once by the restart of slurmctld.
  std::optional<plan::Step> renew;
  std::string digest;  ///< Digest of what daemons mount, after `renew` if it is set. "": there is nothing to mount yet.
  std::optional<Problem> problem;    ///< What is wrong. The message does not change when fewer daemons are waited for.
  std::string waits_for;             ///< Which daemons another key would cut off, and what to do about each; "": none.
  std::string cannot_rotate;         ///< Why the key cannot be rotated while daemons run. "": nothing to report.
  std::optional<Rotation> rotation;  ///< The rotation under way, if any.
  /// True if slurmctld must neither reconfigure nor restart, because daemons would load other data from what they mount.
  bool freezes = false;
};

/// Returns the recipe that restores a generated key from the keyring. Null: the keyring does not have the key.
core::Json restored_key(const Observed& observed);

/// Returns the digest of the key of a slurmctld whose pod or pod template has the annotation `made_with`.
std::string key_by(const Observed& observed, const std::string& made_with);
/// Returns the digest that slurmctld's pod template has while the key with this digest is in force. It is the digest of an
/// earlier key if the key has changed without a new pod.
std::string made_with_key(const Observed& observed, const std::string& digest);
/// Returns the digest of the earlier key that slurmctld's pod template has; "" if it has that of the keyring's present key.
std::string made_with_key(const Observed& observed);

/// Plans the keyring. `state_at_stake`: slurmctld must not be restarted, because its state would be lost.
Keyring plan_keyring(const Observed& observed, bool state_at_stake);

}  // namespace op::controller
