// When the keyring, the copy of the auth/slurm key that daemons mount, follows the Secret that the user names.
//
// slurmctld and slurmds with different keys do not understand each other, and the jobs between them are lost. A kubelet swaps
// a mounted file when its Secret changes, and both daemons read it with the next reconfigure, or when they start. So other data
// in the user's Secret come into force step by step (rotation.hpp); or, where that is not possible, they wait until there is
// nobody to cut off. Then the copy follows, and in the same pass the StatefulSet, whose pod carries the digest of what it
// mounts.
//
// What is in force is told by that digest: it is of the user's Secret, as it was copied. The copy has a note of its own data,
// by which an edit is known: then what runs has its key in memory alone, and must not be told to read the file.
#pragma once

#include <optional>
#include <string>

#include "cluster/status.hpp"
#include "operator/controller/observed.hpp"
#include "operator/controller/rotation.hpp"
#include "plan/plan.hpp"

namespace op::controller {

struct Keyring {
  /// Makes a copy that is not there, or that somebody changed, hold what is in force. Cuts nobody off.
  std::optional<plan::Step> mend;
  /// Brings another key into force: to be followed at once by what restarts slurmctld.
  std::optional<plan::Step> renew;
  std::string digest;                ///< What daemons mount, after `renew` if there is one; "": nothing to mount yet.
  std::optional<Problem> problem;    ///< Its message stays the same while what is waited for gets less.
  std::string waits_for;             ///< Whom another key would cut off, and what there is to do about each; "": nobody.
  std::string cannot_rotate;         ///< And why it cannot come into force meanwhile.
  std::optional<Rotation> rotation;  ///< One is under way.
  /// slurmctld must neither reconfigure nor restart: daemons would load other data, which stand in what they mount.
  bool freezes = false;
};

/// The recipe of a generated key that is gone, where the keyring has it still; null: it has not.
core::Json restored_key(const Observed& observed);

/// `state_at_stake`: slurmctld must not be restarted, for its state would be lost.
/// The digest of the key that a slurmctld has whose pod, or pod template, was made with the digest `made_with`.
std::string key_by(const Observed& observed, const std::string& made_with);
/// The digest that slurmctld's pod template has of the key with this digest, which may have come into force under the pod.
std::string made_with_key(const Observed& observed, const std::string& digest);
/// The same of the keyring as it is; "": the template has its own.
std::string made_with_key(const Observed& observed);

Keyring plan_keyring(const Observed& observed, bool state_at_stake);

}  // namespace op::controller
