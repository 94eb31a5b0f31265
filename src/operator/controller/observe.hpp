// The controller of the resource Controller: plans slurmctld and its configuration. The key of a pass is the "ns/name" of a
// Controller. This controller also writes the objects that all NodeSets of a Controller share. declaration.cpp lists the
// changes that start a pass.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kube/cache/recorder.hpp"
#include "operator/common/slinky.hpp"
#include "operator/controller/observed.hpp"
#include "slinky/wiring.hpp"

namespace op::controller {

/// The caches that the controller reads.
struct Caches {
  explicit Caches(Wiring& wiring);
  kube::Cache<kube::Object>&controllers, &accountings, &nodesets, &restapis, &services, &config_maps, &stateful_sets,
      &pod_disruption_budgets, &claims;
  kube::Cache<kube::PodRecord>& pods;
  kube::Cache<kube::NodeRecord>& nodes;
  bool reads_nodes;
};

/// Finds the node records of workers that no NodeSet manages any more, from the observed NodeSets, workers and Slurm nodes.
[[nodiscard]] std::vector<StaleRecord> find_stale_records(const Observed& observed, const plan::Observing& observing);

class ControllerController final : public kube::TypedController<Observed> {
 public:
  explicit ControllerController(Wiring& wiring, std::string cluster_domain = "cluster.local");
  [[nodiscard]] std::string name() const override { return "controller"; }
  [[nodiscard]] std::string share(const kube::Key& key) const override { return cluster_key(key.ns, key.name); }

 protected:
  std::shared_ptr<const Observed> observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                const run::Observation& context) override;

 private:
  Wiring& wiring_;
  Caches caches_;
  std::string cluster_domain_;
};

}  // namespace op::controller
