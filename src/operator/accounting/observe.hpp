// Accounting: the slurmdbd of one or several Controllers. Key: "ns/name" of the Accounting. What wakes it is in
// declaration.cpp.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "kube/cache/recorder.hpp"
#include "operator/accounting/observed.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/wiring.hpp"

namespace op::accounting {

/// The caches that the controller reads.
struct Caches {
  explicit Caches(Wiring& wiring);
  kube::Cache<kube::Object>&accountings, &controllers, &restapis, &services, &config_maps, &stateful_sets;
  kube::Cache<kube::PodRecord>& pods;
};

class AccountingController final : public kube::TypedController<Observed> {
 public:
  explicit AccountingController(Wiring& wiring);
  [[nodiscard]] std::string name() const override { return "accounting"; }

 protected:
  std::shared_ptr<const Observed> observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                const run::Observation& context) override;

 private:
  Caches caches_;
  /// The last answer through each cluster, by Accounting, because it is rarely asked for.
  std::map<kube::Key, std::map<slurm::ClusterKey, Said>> said_;
};

}  // namespace op::accounting
