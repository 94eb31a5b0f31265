// The caches of the governance controller, what wakes it, and the rights that it needs.
#include "operator/governance/observe.hpp"
#include "operator/governance/plan.hpp"

namespace op::governance {

using kube::Object;

Caches::Caches(Wiring& wiring) : accountings(wiring.cache(caches::kAccountings)), qos(wiring.cache(caches::kSlurmQos)) {}

GovernanceController::GovernanceController(Wiring& wiring)
    : TypedController(governance::plan), wiring_(wiring), caches_(wiring) {
  wiring.run(*this);
  wiring.reconciles(resources::kSlurmQos);

  wiring.wakes<Object>(*this, caches_.accountings, kube::self<Object>(), intent_changed);
  wiring.wakes<Object>(*this, caches_.qos, [](const Object& qos) -> Keys {
    const kube::Key key = accounting_ref(qos);
    return key.name.empty() ? Keys{} : Keys{key};
  });
  wiring.wakes_on_lists(name(), [](const slurm::ListChange&, const kube::Key& of) -> Keys { return {of}; });
}

}  // namespace op::governance
