// Mounts the keyring in pods: see operator/controller/rotation.hpp.
#pragma once

#include <string_view>

#include "core/json.hpp"

namespace op {

/// The volume with slurm.key and, while a key rotates, slurm.jwks.
inline constexpr std::string_view kEtcVolume = "slurm-etc";

/// The init container of login pods that copies the key. Its termination message names the rotation that the files belong to.
inline constexpr std::string_view kInitConf = "initconf";

/// Returns the source of a projected volume for the additional files of the keyring while its key rotates.
core::Json project_rotation(std::string_view keyring);
/// Returns the source of a projected volume for login pods: their slurm.jwks, and login-generation.
core::Json project_login_rotation(std::string_view keyring);
/// Returns the command of a container that waits until /etc/slurm has the files of this step of the rotation.
core::Json wait_for_keys(std::string_view generation);
/// Returns the environment variables with the paths of slurm.key and slurm.jwks, for slurmctld and slurmd. Without the
/// variables, slurmd finds only the file that existed when it started, because it looks for the other file in the directory of
/// its fetched configuration. slurm.jwks takes precedence over slurm.key.
core::Json keys_env();
/// Marks a pod template if the daemon in this container reads what project_rotation mounts. Users may have replaced any part of
/// the template.
void mark_reader(core::Json& pod_template, std::string_view container);

}  // namespace op
