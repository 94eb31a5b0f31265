// The controller of Accountings. An Accounting describes the slurmdbd of one or several Controllers. The controller reconciles
// each Accounting by its "ns/name". declaration.cpp lists the changes that wake the controller.
#pragma once

#include <map>
#include <memory>
#include <optional>
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
  /// The last answers about the slurmdbd of each Accounting. A pass that does not ask slurmdbd uses these answers.
  struct Answers {
    std::map<slurm::ClusterKey, Said> through_clusters;
    std::optional<Reached> of_port;
  };
  std::map<kube::Key, Answers> answers_;
};

}  // namespace op::accounting
