// The controller of RestApis. A RestApi requests the slurmrestd of a Controller. The controller reconciles each RestApi by its
// "ns/name". declaration.cpp lists the changes that wake the controller.
//
// Folder src/operator/restapi: the controller of RestApis. Uses operator/common, and no other controller.
#pragma once

#include <memory>
#include <string>

#include "kube/cache/recorder.hpp"
#include "operator/common/slinky.hpp"
#include "operator/restapi/observed.hpp"
#include "slinky/wiring.hpp"

namespace op::restapi {

/// The caches that the controller reads.
struct Caches {
  explicit Caches(Wiring& wiring);
  kube::Cache<kube::Object>&restapis, &controllers, &nodesets, &services, &config_maps, &deployments;
  kube::Cache<kube::PodRecord>& pods;
};

class RestApiController final : public kube::TypedController<Observed> {
 public:
  explicit RestApiController(Wiring& wiring);
  [[nodiscard]] std::string name() const override { return "restapi"; }

 protected:
  std::shared_ptr<const Observed> observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                const run::Observation& context) override;

 private:
  Caches caches_;
};

}  // namespace op::restapi
