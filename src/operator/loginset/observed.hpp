// The facts for the plan of a LoginSet, copied from the caches at one moment.
#pragma once

#include <string>
#include <vector>

#include "api/controller.hpp"
#include "api/loginset.hpp"
#include "kube/object.hpp"
#include "operator/common/slinky.hpp"
#include "plan/plan.hpp"
#include "slinky/keys.hpp"

namespace op::loginset {

struct Observed {
  plan::Context context;
  kube::ObjectPtr object;
  api::LoginSet loginset;
  std::string parse_error;
  std::string cluster_domain = "cluster.local";  ///< The domain of Services, for search paths and host names.

  bool controller_exists = false;
  std::string controller_error;  ///< Why the Controller's spec cannot be parsed.
  Endpoint controller;           ///< The Service of slurmctld.
  bool external = false;         ///< slurmctld runs outside of Kubernetes and has no Service.
  std::string conf_servers;      ///< The addresses at which sackd finds slurmctld.
  SecretFacts slurm_key;         ///< The Secret that the Controller's user names, or a generated one.
  SecretFacts keyring;           ///< The copy of slurm_key that pods mount.
  SecretFacts sssd_conf;         ///< The Secret of spec.sssdConfRef.
  kube::Named<kube::SecretRecord> host_keys;
  std::optional<Problem> newer;        ///< The image is of a later release than slurmctld: see slinky/releases.hpp.
  std::vector<Problem> missing;        ///< Missing Secrets and ConfigMaps that the pod's spec names.
  std::vector<Problem> keys_problems;  ///< Problems with authorized keys of root and users. The pods run without these keys.
  std::string users_keys;              ///< Digest of the users' authorized keys.

  kube::ObjectPtr service, config_map, deployment, hosts;
  std::vector<kube::PodPtr> pods;
};

}  // namespace op::loginset
