// Replaces the auth/slurm key while jobs run. At any time, every daemon can verify the messages of every other daemon.
//
// Daemons read slurm.jwks if the file exists: all keys in the file verify, and one of them signs (auth_slurm, 24.05 and later).
// The keyring goes through these steps. Its data hold the keys of the current step, and an annotation names this step:
//
// clang-format off
//             slurm.key  other.key  slurm.jwks          login.jwks          which keys daemons use during the step
//   both      old        new        old signs, and new                      everybody signs with the old key
//   logins    old        new        old signs, and new  new signs, and old  everybody has both, except older login pods
//   switched  new        old        new signs, and old  new signs, and old  everybody has both
//   alone     new                                                           everybody signs with the new key
// clang-format on
//
// A step begins only when every slurmctld and slurmd is known to have loaded the files of the previous step, and when all
// messages that were signed before this load have expired. A kubelet does not report when it has refreshed a volume. So each
// pod gets an ephemeral container that mounts the keyring's volume and ends when the file key-generation is that of the step.
// The pod's status shows when this container ended. A slurmd has loaded the files if it was started or reconfigured more
// than half a minute after that time, by the clock of its own machine. The same holds for slurmctld, which passes the
// reconfigure on to slurmds.
//
// A backup of slurmctld, and the sackd of a login pod, read keys only when they start. So each step replaces the backups, which
// ends no job. The new backups wait in an init container for the files of the step. Login pods wait for their sessions to end,
// so login pods are replaced only once. The new login pods need no other files later: they sign with the new key, which all
// other daemons know by then. Their init container reports the rotation to which their files belong.
//
// A daemon that cannot take part delays the next step and is named in the status. If the key cannot rotate in this
// way, the new key waits: see keyring.hpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/controller/observed.hpp"
#include "operator/controller/rollout.hpp"
#include "plan/plan.hpp"

namespace op::controller {

struct Rotation {
  std::optional<plan::Step> write;    ///< Brings the keyring to the next step of the rotation, or ends the rotation.
  std::vector<plan::Step> witnesses;  ///< Steps that add the ephemeral containers described above.
  bool loads = false;                 ///< slurmctld, and through it every slurmd, has to load the files of this step.
  std::string told;                   ///< For the status: the progress, and the pods for which the rotation waits.
};

/// Returns the reasons why the key cannot change while daemons run, and what to do about each reason. "": the key can change.
std::string cannot_rotate(const Observed& observed);

/// Returns a reference to the observed version of a value in a Secret, for the recipes $copy and $jwks (kube/acts.hpp).
core::Json key_in(const SecretFacts& secret, std::string_view key);

/// Returns the first step of a rotation.
plan::Step begin_rotation(const Observed& observed);

/// Returns what the current rotation needs next. Requires a usable keyring with a rotation.
Rotation plan_rotation(const Observed& observed);

/// Adds the step that makes the daemons load the files of the rotation. `state`: the stored state.
void add_key_load(const Observed& observed, const ConfigState& state, const Rotation& rotation, plan::Plan& plan);

}  // namespace op::controller
