// RestApi: the slurmrestd of a Controller. Key: "ns/name" of the RestApi. What wakes it is in declaration.cpp.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/controller.hpp"
#include "api/restapi.hpp"
#include "cluster/keys.hpp"
#include "cluster/wiring.hpp"
#include "kube/controller.hpp"

namespace op::restapi {

struct Observed {
  kube::Context context;
  kube::ObjectPtr object;
  api::RestApi restapi;
  std::string parse_error;

  bool controller_exists = false;
  bool external = false;         ///< Its slurmctld is outside of Kubernetes.
  bool accounting = false;       ///< It names an Accounting, and slurm.conf has a slurmdbd.
  std::string controller_error;  ///< The Controller's spec cannot be read.
  std::optional<Problem> newer;  ///< Its image is of a later release than slurmctld: see cluster/releases.hpp.
  SecretFacts sssd_conf;         ///< Of spec.sssdConfRef.
  std::vector<Problem> missing;  ///< Of the Secrets and ConfigMaps that the pods' parts name.
  kube::ObjectPtr config_map;    ///< The Controller's "X-config".
  std::vector<std::string>
      ending_nodesets;  ///< NodeSets of the same Controller that are being deleted: they may need us to drain.
  std::vector<std::string> ending_workers;  ///< Of a Controller that is being deleted with deletionPolicy: Drain.
  bool lasting_nodesets = false;            ///< There are NodeSets that are not being deleted.

  kube::ObjectPtr service, deployment;
  std::vector<kube::PodPtr> pods;
};

/// What it reads.
struct Caches {
  explicit Caches(Wiring& wiring);
  kube::Cache<kube::Object>&restapis, &controllers, &nodesets, &services, &config_maps, &deployments;
  kube::Cache<kube::PodRecord>& pods;
  [[nodiscard]] bool synced() const;
};

class RestApiController final : public kube::TypedController<Observed> {
 public:
  explicit RestApiController(Wiring& wiring);
  [[nodiscard]] std::string name() const override { return "restapi"; }

 protected:
  std::shared_ptr<const Observed> observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                const kube::Observation& context) override;
  [[nodiscard]] plan::Plan plan_typed(const Observed& observed) const override;

 private:
  Caches caches_;
};

}  // namespace op::restapi
