// RestApi: the slurmrestd of a Controller. Key: "ns/name" of the RestApi.
//
// Wake a key when any of these change: the RestApi; the Controller it names, that Controller's ConfigMap and key; NodeSets of
// that Controller (deletion only); its Service, Deployment and pods.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/controller.hpp"
#include "api/restapi.hpp"
#include "cluster/caches.hpp"
#include "cluster/keys.hpp"
#include "kube/controller.hpp"

namespace op::restapi {

struct Observed {
  kube::Context context;
  kube::ObjectPtr object;
  api::RestApi restapi;
  std::string parse_error;

  bool controller_exists = false;
  std::string controller_error;  ///< The Controller's spec cannot be read.
  SecretFacts slurm_key;         ///< The Secret that the Controller's user names, or a generated one.
  SecretFacts keyring;           ///< What is mounted of it.
  std::vector<Problem> missing;  ///< Of the Secrets and ConfigMaps that the pods' parts name.
  kube::ObjectPtr config_map;    ///< The Controller's "X-config".
  std::vector<std::string>
      ending_nodesets;  ///< NodeSets of the same Controller that are being deleted: they may need us to drain.
  std::vector<std::string> ending_workers;  ///< Of a Controller that is being deleted with deletionPolicy: Drain.
  bool lasting_nodesets = false;            ///< There are NodeSets that are not being deleted.

  kube::ObjectPtr service, deployment;
  std::vector<kube::PodPtr> pods;
};

class RestApiController final : public kube::TypedController<Observed> {
 public:
  explicit RestApiController(const Caches& caches) : caches_(caches) {}
  [[nodiscard]] std::string name() const override { return "restapi"; }

 protected:
  std::shared_ptr<const Observed> observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                const kube::Observation& context) override;
  [[nodiscard]] plan::Plan plan_typed(const Observed& observed) const override;

 private:
  const Caches& caches_;
};

}  // namespace op::restapi
