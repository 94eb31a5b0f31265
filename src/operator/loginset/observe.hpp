// The controller of LoginSets. A LoginSet requests the login nodes of a Controller. The controller reconciles each LoginSet by
// its "ns/name". declaration.cpp lists the changes that wake the controller.
#pragma once

#include <memory>
#include <string>

#include "kube/cache/recorder.hpp"
#include "operator/common/slinky.hpp"
#include "operator/loginset/observed.hpp"
#include "slinky/wiring.hpp"

namespace op::loginset {

/// The caches that the controller reads.
struct Caches {
  explicit Caches(Wiring& wiring);
  kube::Cache<kube::Object>&loginsets, &controllers, &services, &config_maps, &deployments, &endpoint_slices;
  kube::Cache<kube::PodRecord>& pods;
};

class LoginSetController final : public kube::TypedController<Observed> {
 public:
  explicit LoginSetController(Wiring& wiring, std::string cluster_domain = "cluster.local");
  [[nodiscard]] std::string name() const override { return "loginset"; }

 protected:
  std::shared_ptr<const Observed> observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                const run::Observation& context) override;

 private:
  Caches caches_;
  std::string cluster_domain_;
};

}  // namespace op::loginset
