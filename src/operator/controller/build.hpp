// Builds the child objects of a Controller as JSON to apply. Pure functions: they use no cache and no clock.
#pragma once

#include <optional>
#include <string>

#include "core/json.hpp"
#include "operator/controller/observed.hpp"
#include "operator/controller/rollout.hpp"

namespace op::controller {

core::Json build_service(const Observed& observed);
core::Json build_internal_service(const Observed& observed);
/// Returns the Service of one slurmctld pod. This Service exists only if the cluster has backups.
core::Json build_pod_service(const Observed& observed, const std::string& pod);
/// Returns the PodDisruptionBudget of all slurmctlds. This object exists only if the cluster has backups.
core::Json build_slurmctld_pdb(const Observed& observed);
/// Return the headless Service and the PodDisruptionBudget of all workers of this Controller, across NodeSets.
core::Json build_workers_service(const Observed& observed);
core::Json build_workers_pdb(const Observed& observed);
core::Json build_config_map(const Observed& observed, const ConfigState& state);
/// Returns the ConfigMap `name`, which holds copies of the user's files. `content`: the offered or accepted files of a
/// ConfigState.
core::Json build_file_copies(const Observed& observed, const std::string& name,
                             const std::map<std::string, std::string>& content);
/// True if slurmctld's pods mount copies of the user's files. (Earlier releases mounted the user's ConfigMaps.) The pods mount
/// copies if the offered or the accepted content has users' files, even if the spec no longer names these files. Until the
/// files of both contents are known, the mounts do not change.
bool mounts_copies(const Observed& observed, const ConfigState& state);
/// Returns the StatefulSet of slurmctld. `state`: the content of the ConfigMap. `slurm_key_digest`: the digest of the keyring
/// that slurmctld will mount. Requires the JWT key. If the StatefulSet exists, copies its immutable fields from the observed
/// object.
core::Json build_stateful_set(const Observed& observed, const ConfigState& state, const std::string& slurm_key_digest);
/// Returns the StatefulSet of the standby slurmctlds, which have the configuration and key of the primary.
core::Json build_backup_set(const Observed& observed, const ConfigState& state, const std::string& slurm_key_digest);
/// Returns a Secret with the result of `recipe`, to be created once. The Secret has no owner, so that it outlives the
/// Controller.
core::Json build_key_secret(const Observed& observed, const KeyRef& ref, core::Json recipe);

/// Returns the directory with slurmctld's state.
std::string state_directory(const Observed& observed);
/// Returns the digest of sssd.conf in the annotations of slurmctld's pod template, or "".
std::string made_with_sssd_conf(const Observed& observed);
/// Returns the image with which slurmctld will run.
std::string slurmctld_image(const api::ControllerSpec& spec);

/// Returns the volume source that mounts topology.yaml from the ConfigMap X-config into /etc/slurm of slurmctld's pod.
core::Json topology_source(const Observed& observed);
/// Returns the changes that the user wants but that an existing StatefulSet does not allow.
std::vector<Problem> immutable_problems(const Observed& observed);

}  // namespace op::controller
