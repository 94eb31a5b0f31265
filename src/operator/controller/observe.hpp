// The controller of kind Controller. Its key is the Controller's, "ns/X"; it also writes what all NodeSets of X share.
//
// Wake a key when any of these change: the Controller; NodeSets and RestApis that name it (spec, deletion); its children
// (labels app.kubernetes.io/name=slurmctld and instance=X; the two worker objects by name); slurmctld's pods; worker pods that
// appear or go (while the Controller is terminating, or their NodeSet is gone); claims; the snapshot's health, partitions or
// configuration.
#pragma once

#include <memory>
#include <string>

#include "cluster/caches.hpp"
#include "kube/controller.hpp"
#include "operator/controller/observed.hpp"

namespace op::controller {

class ControllerController final : public kube::TypedController<Observed> {
 public:
  explicit ControllerController(const Caches& caches) : caches_(caches) {}
  [[nodiscard]] std::string name() const override { return "controller"; }
  [[nodiscard]] std::string share(const kube::Key& key) const override { return cluster_key(key.ns, key.name); }

 protected:
  std::shared_ptr<const Observed> observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                const kube::Observation& context) override;
  plan::Plan plan_typed(const Observed& observed) const override;

 private:
  const Caches& caches_;
};

}  // namespace op::controller
