// Mounts the keyring in pods. operator/controller/rotation.hpp describes the keyring and the rotation of its key.
#pragma once

#include <string_view>

#include "core/json.hpp"

namespace op {

/// The volume with slurm.key and, while a key rotates, slurm.jwks.
inline constexpr std::string_view kEtcVolume = "slurm-etc";

/// The init container of login pods that copies the key. The termination message of the init container names the key rotation
/// to which the copied files belong.
inline constexpr std::string_view kInitConf = "initconf";

/// Returns a source of a projected volume, with the files that the keyring has only while its key rotates.
core::Json project_rotation(std::string_view keyring);
/// Returns a source of a projected volume, with the rotation files for login pods: their own slurm.jwks, and login-generation.
core::Json project_login_rotation(std::string_view keyring);
/// Returns a container command that waits until /etc/slurm has the files of the rotation step `generation`.
core::Json wait_for_keys(std::string_view generation);
/// Returns the environment variables with the paths of slurm.key and slurm.jwks, for slurmctld and slurmd. Without the
/// variables, slurmd finds only the key file that existed when slurmd started, because slurmd looks for the other key file in
/// the directory of the configuration that it has fetched. slurm.jwks takes precedence over slurm.key.
core::Json keys_env();
/// Adds an annotation to the pod template if the daemon in `container` reads the files that project_rotation mounts. Users can
/// replace any part of the template, so the function checks the merged template.
void mark_reader(core::Json& pod_template, std::string_view container);

}  // namespace op
