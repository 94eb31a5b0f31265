// How pods mount the keyring: see operator/controller/rotation.hpp.
#pragma once

#include <string_view>

#include "core/json.hpp"

namespace op {

/// The volume with slurm.key and, while a key rotates, slurm.jwks.
inline constexpr std::string_view kEtcVolume = "slurm-etc";

/// The init container of login pods that copies the key. It says at its end of which rotation its files are.
inline constexpr std::string_view kInitConf = "initconf";

/// Source of a projected volume: what a keyring has while its key rotates.
core::Json project_rotation(std::string_view keyring);
/// The same of login pods: slurm.jwks as they are to have it, and login-generation.
core::Json project_login_rotation(std::string_view keyring);
/// The command of a container that waits until /etc/slurm has the files of this step.
core::Json wait_for_keys(std::string_view generation);
/// The environment variables by which slurmd finds both files: without them it looks beside the configuration that it has
/// fetched, but for the one that was there when it started. slurm.jwks goes before slurm.key where it is there.
core::Json keys_env();
/// Marks a pod template, in which users may have replaced any part, if the daemon in this container reads what
/// project_rotation mounts.
void mark_reader(core::Json& pod_template, std::string_view container);

}  // namespace op
