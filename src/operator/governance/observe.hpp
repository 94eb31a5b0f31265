// The controller of the QOS, accounts, users and associations that resources declare for an Accounting. It reconciles all these
// resources together, by the "ns/name" of the Accounting. declaration.cpp lists the changes that wake the controller.
#pragma once

#include <memory>
#include <string>

#include "kube/cache/recorder.hpp"
#include "operator/common/slinky.hpp"
#include "operator/governance/observed.hpp"
#include "slinky/names.hpp"
#include "slinky/wiring.hpp"

namespace op::governance {

/// The caches that the controller reads.
struct Caches {
  explicit Caches(Wiring& wiring);
  kube::Cache<kube::Object>&accountings, &controllers, &qos, &accounts, &users, &associations;
};

class GovernanceController final : public kube::TypedController<Observed> {
 public:
  explicit GovernanceController(Wiring& wiring);
  [[nodiscard]] std::string name() const override { return "governance"; }
  [[nodiscard]] std::string share(const kube::Key& key) const override { return accounting_key(key.ns, key.name); }

 protected:
  std::shared_ptr<const Observed> observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                const run::Observation& context) override;

 private:
  Wiring& wiring_;
  Caches caches_;
};

}  // namespace op::governance
