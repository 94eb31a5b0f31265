// The caches of the governance controller, what wakes it, and the rights that it needs.
#include "operator/governance/observe.hpp"
#include "operator/governance/plan.hpp"

namespace op::governance {

using kube::Object;

Caches::Caches(Wiring& wiring)
    : accountings(wiring.cache(caches::kAccountings)),
      qos(wiring.cache(caches::kSlurmQos)),
      accounts(wiring.cache(caches::kSlurmAccounts)),
      users(wiring.cache(caches::kSlurmUsers)) {}

GovernanceController::GovernanceController(Wiring& wiring)
    : TypedController(governance::plan), wiring_(wiring), caches_(wiring) {
  wiring.run(*this);
  for (const kube::Resource* resource : {&resources::kSlurmQos, &resources::kSlurmAccount, &resources::kSlurmUser})
    wiring.reconciles(*resource);

  wiring.wakes<Object>(*this, caches_.accountings, kube::self<Object>(), intent_changed);
  const auto accounting_of = [](const Object& object) -> Keys {
    const kube::Key key = accounting_ref(object);
    return key.name.empty() ? Keys{} : Keys{key};
  };
  for (kube::Cache<Object>* cache : {&caches_.qos, &caches_.accounts, &caches_.users})
    wiring.wakes<Object>(*this, *cache, accounting_of);
  wiring.wakes_on_lists(name(), [](const slurm::ListChange&, const kube::Key& of) -> Keys { return {of}; });
}

}  // namespace op::governance
