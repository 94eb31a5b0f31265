// Declares what the governance controller reads, what wakes it, and the rights that it needs.
#include <algorithm>

#include "operator/governance/following.hpp"
#include "operator/governance/observe.hpp"
#include "operator/governance/plan.hpp"

namespace op::governance {

using kube::Object;

Caches::Caches(Wiring& wiring)
    : accountings(wiring.cache(caches::kAccountings)),
      controllers(wiring.cache(caches::kControllers)),
      qos(wiring.cache(caches::kSlurmQos)),
      accounts(wiring.cache(caches::kSlurmAccounts)),
      users(wiring.cache(caches::kSlurmUsers)),
      associations(wiring.cache(caches::kSlurmAssociations)) {}

GovernanceController::GovernanceController(Wiring& wiring)
    : TypedController(governance::plan), wiring_(wiring), caches_(wiring) {
  wiring.run(*this);
  for (const kube::Resource* resource :
       {&resources::kSlurmQos, &resources::kSlurmAccount, &resources::kSlurmUser, &resources::kSlurmAssociation})
    wiring.reconciles(*resource);

  wiring.wakes<Object>(*this, caches_.accountings, kube::self<Object>(), intent_changed);
  const auto accounting_of = [](const Object& object) -> Keys {
    const kube::Key key = accounting_ref(object);
    return key.name.empty() ? Keys{} : Keys{key};
  };
  // Limits can follow the capacity of the clusters of the Accounting, and associations can be for their partitions.
  wiring.wakes<Object>(*this, caches_.controllers, accounting_of, intent_changed);
  wiring.wakes_on_slurm(name(), [this, accounting_of](const slurm::Change& change, const kube::Key& cluster) -> Keys {
    const kube::ObjectPtr controller = caches_.controllers.find(cluster);
    Keys keys = controller ? accounting_of(*controller) : Keys{};
    if (keys.empty()) return {};
    const auto any = [&](const kube::Cache<Object>& cache, bool (*concerned)(const Object&)) {
      return std::ranges::any_of(cache.by_index(kIndexAccounting, keys.front().str()),
                                 [&](const kube::ObjectPtr& each) { return concerned(*each); });
    };
    const bool known = change.before != nullptr && change.now != nullptr;
    const bool partitions = change.health || change.partitions || !known;
    if (partitions && (any(caches_.users, names_partition) || any(caches_.associations, names_partition))) return keys;
    const bool nodes = partitions || capacity_changed(change.nodes, *change.before, *change.now);
    return nodes && any(caches_.qos, follows_capacity) ? keys : Keys{};
  });
  for (kube::Cache<Object>* cache : {&caches_.qos, &caches_.accounts, &caches_.users, &caches_.associations})
    wiring.wakes<Object>(*this, *cache, accounting_of);
  wiring.wakes_on_lists(name(), [](const slurm::ListChange&, const kube::Key& of) -> Keys { return {of}; });
}

}  // namespace op::governance
