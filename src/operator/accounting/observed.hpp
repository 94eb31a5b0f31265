// The facts for the plan of an Accounting, copied from the caches at one moment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/accounting.hpp"
#include "kube/object.hpp"
#include "operator/common/slinky.hpp"
#include "plan/plan.hpp"
#include "slinky/keys.hpp"
#include "slurm/accounting/model.hpp"

namespace op::accounting {

/// slurmdbd's list of clusters, read through the slurmrestd of one cluster.
struct Said {
  core::Result<std::vector<slurm::accounting::Cluster>> clusters;
  core::MonoTime asked_at;
};

/// The outcome of a connection to the port of an external slurmdbd.
struct Reached {
  Endpoint port;
  core::Result<void> result;
  core::MonoTime asked_at;
};

/// A Controller that names this Accounting.
struct Cluster {
  std::string name;          ///< The Controller's name.
  slurm::ClusterKey key;     ///< The key of the Controller's cluster: see cluster_key().
  std::string cluster_name;  ///< The name of the cluster in slurmdbd. "": the spec of the Controller cannot be parsed.
  SecretFacts slurm_key, jwt_key, keyring;
  bool ends = false;      ///< The Controller is being deleted.
  bool external = false;  ///< slurmctld is outside of Kubernetes, so what it has loaded is unknown.
  bool joined = false;    ///< slurmctld has loaded a slurm.conf with this slurmdbd.
  bool offered = false;   ///< The loaded or the offered slurm.conf has this slurmdbd.
  bool restapi = false;   ///< A RestApi serves the cluster, so slurmdbd can be asked through its slurmrestd.
  std::optional<Said> said;
};

struct Observed {
  plan::Context context;
  kube::ObjectPtr object;
  api::Accounting accounting;
  std::string parse_error;

  std::vector<Cluster> clusters;     ///< In the order of clusters_of(): those that have joined come first.
  std::vector<std::string> leaving;  ///< See leaving_clusters(). Empty unless the Accounting is being deleted.
  std::optional<Reached> reached;    ///< nullopt without spec.external.
  /// The keys for slurmdbd, and the Controller whose keys are used (`keys_of`): see AccountingKeys.
  std::optional<SecretFacts> slurm_key, jwt_key;
  std::string keys_of;
  SecretFacts password;
  std::optional<std::string> jwks;  ///< The text that spec.jwksKeyRef names.
  std::vector<Problem> missing;     ///< Missing Secrets and ConfigMaps, other than the keys.

  kube::ObjectPtr service, config_map, stateful_set;
  std::vector<kube::PodPtr> pods;
  // The next members are set only if the operator runs the MariaDB: see database.hpp.
  kube::ObjectPtr database_service, database_set;
  std::vector<kube::PodPtr> database_pods;
};

}  // namespace op::accounting
