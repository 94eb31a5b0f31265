// What the LoginSet's plan knows: copies of what the caches held at one moment, and nothing else.
#pragma once

#include <string>
#include <vector>

#include "api/controller.hpp"
#include "api/loginset.hpp"
#include "cluster/keys.hpp"
#include "kube/object.hpp"
#include "plan/plan.hpp"

namespace op::loginset {

struct Observed {
  plan::Context context;
  kube::ObjectPtr object;
  api::LoginSet loginset;
  std::string parse_error;
  std::string cluster_domain = "cluster.local";  ///< For the DNS search path, in which workers are found.

  bool controller_exists = false;
  std::string controller_error;  ///< The Controller's spec cannot be read.
  Endpoint controller;           ///< The Service of slurmctld.
  bool external = false;         ///< There is none: slurmctld is outside of Kubernetes.
  std::string conf_servers;      ///< Where sackd finds slurmctld.
  SecretFacts slurm_key;         ///< The Secret that the Controller's user names, or a generated one.
  SecretFacts keyring;           ///< What is mounted of it.
  SecretFacts sssd_conf;         ///< Of spec.sssdConfRef.
  kube::Named<kube::SecretRecord> host_keys;
  std::optional<Problem> newer;        ///< Its image is of a later release than slurmctld: see cluster/releases.hpp.
  std::vector<Problem> missing;        ///< Of the Secrets and ConfigMaps that the pods' parts name.
  std::vector<Problem> keys_problems;  ///< Of root's and users' keys. The pods do without.
  std::string users_keys;              ///< Digests of those that are there.

  kube::ObjectPtr service, config_map, deployment, hosts;
  std::vector<kube::PodPtr> pods;
};

}  // namespace op::loginset
