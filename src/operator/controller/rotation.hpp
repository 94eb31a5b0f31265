// How another auth/slurm key comes into force while jobs run, without one message that its receiver cannot verify.
//
// Daemons read slurm.jwks, where it is there: all keys in it verify, and one of them signs (auth_slurm, 24.05 and later). The
// keyring goes through these steps; what each holds stands in its data, and which step it is in an annotation:
//
// clang-format off
//             slurm.key  other.key  slurm.jwks          login.jwks          who is understood meanwhile
//   both      old        new        old signs, and new                      everybody signs with the old key
//   logins    old        new        old signs, and new  new signs, and old  all but login pods have both, as have new login pods
//   switched  new        old        new signs, and old  new signs, and old  everybody has both
//   alone     new                                                           everybody signs with the new one
// clang-format on
//
// A step comes only when every slurmctld and slurmd is known to have loaded the files of the one before. A kubelet tells
// nobody when it has refreshed a volume. So each pod gets an ephemeral container that mounts the same volume, waits until the
// file key-generation is that of the step, and ends: the end of it stands in the pod's status. A slurmd that was started or
// reconfigured half a minute later than that, by the clock of the same machine, has loaded the files; and so has slurmctld,
// through which slurmds are told to. Before the next step, what was signed otherwise has expired.
//
// A backup of slurmctld, and the sackd of a login pod, read keys when they start. So backups are made anew in each step, which
// costs nothing, and wait for its files in an init container. Login pods, which wait for the sessions on them, are made anew
// once: the new ones have what they can keep, for they sign with the new key, which all that they talk to know by then. Their
// init container tells of which rotation its files are.
//
// Who cannot take part holds the next step back, and is named. What cannot rotate in this way waits as before: see keyring.hpp.
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
  std::optional<plan::Step> write;    ///< Brings the keyring to its next step, or ends the rotation.
  std::vector<plan::Step> witnesses;  ///< Ephemeral containers.
  bool loads = false;                 ///< slurmctld, and through it every slurmd, is to load the files of this step.
  std::string told;                   ///< How far it is, and whom it waits for.
};

/// Why the key cannot change while daemons run: each reason, with what to do about it. "": it can.
std::string cannot_rotate(const Observed& observed);

/// The value in a Secret as it was seen, for the recipes $copy and $jwks (kube/acts.hpp).
core::Json key_in(const SecretFacts& secret, std::string_view key);

/// The first step.
plan::Step begin_rotation(const Observed& observed);

/// What the rotation that is under way needs next. The keyring must be usable, and must have one.
Rotation plan_rotation(const Observed& observed);

/// Adds the step by which the daemons load the files. `state`: as it stands.
void add_key_load(const Observed& observed, const ConfigState& state, const Rotation& rotation, plan::Plan& plan);

}  // namespace op::controller
