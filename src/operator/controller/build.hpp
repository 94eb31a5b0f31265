// The children of a Controller, as data to apply. Pure functions: no cache, no clock.
#pragma once

#include <optional>
#include <string>

#include "core/json.hpp"
#include "operator/controller/observed.hpp"
#include "operator/controller/rollout.hpp"

namespace op::controller {

core::Json build_service(const Observed& observed);
core::Json build_internal_service(const Observed& observed);
/// Of one slurmctld's pod, where there are backups.
core::Json build_pod_service(const Observed& observed, const std::string& pod);
/// Of all slurmctlds, where there are backups.
core::Json build_slurmctld_pdb(const Observed& observed);
/// The headless Service and the PodDisruptionBudget of all workers of this Controller, whatever their NodeSet.
core::Json build_workers_service(const Observed& observed);
core::Json build_workers_pdb(const Observed& observed);
core::Json build_config_map(const Observed& observed, const ConfigState& state);
/// The ConfigMap `name` with the copies of the user's files in `content`, one of a ConfigState.
core::Json build_file_copies(const Observed& observed, const std::string& name,
                             const std::map<std::string, std::string>& content);
/// Whether slurmctld's pods mount these, and not the user's ConfigMaps themselves, as earlier releases made them. They do as
/// soon as all is known that slurmctld may have to go back to, and for as long as there is any file in it: what the spec does
/// not name any more may have to come back. While that is not known, they stay as they are.
bool mounts_copies(const Observed& observed, const ConfigState& state);
/// `state`: what the ConfigMap will hold. `slurm_key_digest`: of the keyring as slurmctld will mount it. Needs the JWT key's
/// too. Members that Kubernetes never lets change are taken from the observed StatefulSet where there is one.
core::Json build_stateful_set(const Observed& observed, const ConfigState& state, const std::string& slurm_key_digest);
/// The slurmctlds that stand by, of the same configuration and key.
core::Json build_backup_set(const Observed& observed, const ConfigState& state, const std::string& slurm_key_digest);
/// A Secret that holds what the recipe makes, once; without owner, so that it outlives the Controller.
core::Json build_key_secret(const Observed& observed, const KeyRef& ref, core::Json recipe);

/// The directory of slurmctld's state.
std::string state_directory(const Observed& observed);
/// The digest of sssd.conf in the template of slurmctld's pods; "": they were made without one.
std::string made_with_sssd_conf(const Observed& observed);
/// The image slurmctld will run with.
std::string slurmctld_image(const api::ControllerSpec& spec);

/// What brings our topology.yaml into /etc/slurm of a pod.
core::Json topology_source(const Observed& observed);
/// What the user asks of a StatefulSet that exists and cannot be changed any more.
std::vector<Problem> immutable_problems(const Observed& observed);

}  // namespace op::controller
