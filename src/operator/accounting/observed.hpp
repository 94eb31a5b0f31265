// What the Accounting's plan knows: copies of what the caches held at one moment, and nothing else.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/accounting.hpp"
#include "cluster/keys.hpp"
#include "kube/object.hpp"
#include "plan/plan.hpp"
#include "slurm/accounting/model.hpp"

namespace op::accounting {

/// What slurmdbd said of the clusters that it has, when it was asked over the slurmrestd of one of them.
struct Said {
  core::Result<std::vector<slurm::accounting::Cluster>> clusters;
  core::MonoTime asked_at;
};

/// A Controller that names this Accounting.
struct Cluster {
  std::string name;          ///< Of the Controller.
  slurm::ClusterKey key;     ///< Likewise, for questions.
  std::string cluster_name;  ///< As slurmdbd knows it; "": its spec cannot be read.
  SecretFacts slurm_key, jwt_key, keyring;
  bool ends = false;      ///< It is being deleted.
  bool external = false;  ///< Its slurmctld is outside of Kubernetes: what that has loaded is not known.
  bool joined = false;    ///< Its slurmctld has loaded a slurm.conf with this slurmdbd.
  bool restapi = false;   ///< A RestApi serves it, over which slurmdbd can be asked.
  std::optional<Said> said;
};

struct Observed {
  plan::Context context;
  kube::ObjectPtr object;
  api::Accounting accounting;
  std::string parse_error;

  std::vector<Cluster> clusters;  ///< The oldest first.
  /// See AccountingKeys.
  std::optional<SecretFacts> slurm_key, jwt_key;
  SecretFacts password;
  std::optional<std::string> jwks;  ///< The text that spec.jwksKeyRef names.
  std::vector<Problem> missing;     ///< Of the Secrets and ConfigMaps that are named beside the keys.

  kube::ObjectPtr service, config_map, stateful_set;
  std::vector<kube::PodPtr> pods;
  // Of a MariaDB that the operator runs: see database.hpp.
  kube::ObjectPtr database_service, database_set;
  std::vector<kube::PodPtr> database_pods;
};

}  // namespace op::accounting
