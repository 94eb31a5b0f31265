// Accounting: the slurmdbd of one or several Controllers. Key: "ns/name" of the Accounting. What wakes it is in
// declaration.cpp.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/accounting.hpp"
#include "cluster/keys.hpp"
#include "cluster/wiring.hpp"
#include "kube/controller.hpp"
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
  kube::Context context;
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

/// What it reads.
struct Caches {
  explicit Caches(Wiring& wiring);
  kube::Cache<kube::Object>&accountings, &controllers, &restapis, &services, &config_maps, &stateful_sets;
  kube::Cache<kube::PodRecord>& pods;
  [[nodiscard]] bool synced() const;
};

class AccountingController final : public kube::TypedController<Observed> {
 public:
  explicit AccountingController(Wiring& wiring);
  [[nodiscard]] std::string name() const override { return "accounting"; }

 protected:
  std::shared_ptr<const Observed> observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                const kube::Observation& context) override;
  [[nodiscard]] plan::Plan plan_typed(const Observed& observed) const override;

 private:
  Caches caches_;
  /// What was last said over each cluster, by Accounting: it is asked for seldom.
  std::map<kube::Key, std::map<slurm::ClusterKey, Said>> said_;
};

}  // namespace op::accounting
