// Declares what the Accounting controller reads, what wakes it, and the rights that it needs.
#include "api/well_known.hpp"
#include "operator/accounting/observe.hpp"
#include "operator/accounting/plan.hpp"
#include "operator/common/slinky.hpp"
#include "operator/common/watches.hpp"
#include "slinky/config_map.hpp"

namespace op::accounting {

using kube::Object;
using kube::PodRecord;

Caches::Caches(Wiring& wiring)
    : accountings(wiring.cache(caches::kAccountings)),
      controllers(wiring.cache(caches::kControllers)),
      restapis(wiring.cache(caches::kRestApis)),
      services(wiring.cache(caches::kServices)),
      config_maps(wiring.cache(caches::kConfigMaps)),
      stateful_sets(wiring.cache(caches::kStatefulSets)),
      pods(wiring.cache(caches::kPods)) {}

AccountingController::AccountingController(Wiring& wiring) : TypedController(accounting::plan), caches_(wiring) {
  wiring.run(*this);
  wiring.reconciles(resources::kAccounting);
  wiring.makes(kube::resources::kService);
  wiring.makes(kube::resources::kConfigMap);
  wiring.makes(kube::resources::kStatefulSet);
  // The operator creates a Secret for the password of a managed MariaDB. The operator also reads Secrets: keys, a user's
  // password, and Secrets that pod templates name.
  wiring.makes(kube::resources::kSecret);

  wiring.wakes<Object>(*this, caches_.accountings, kube::self<Object>());
  const auto named_by = [](const Object& controller) -> Keys {
    const kube::Key key = accounting_ref(controller);
    return key.name.empty() ? Keys{} : Keys{key};
  };
  const auto named_by_cluster = [this, named_by](const kube::Key& key) {
    const kube::ObjectPtr controller = caches_.controllers.find(key);
    return controller ? named_by(*controller) : Keys{};
  };
  wiring.wakes<Object>(*this, caches_.controllers, named_by, intent_changed);
  // The Accounting's controller asks slurmdbd through slurmrestd, so it depends on RestApis.
  wiring.wakes<Object>(
      *this, caches_.restapis, [named_by_cluster](const Object& restapi) { return named_by_cluster(controller_ref(restapi)); },
      intent_changed);
  wiring.wakes_on_slurm(name(), [named_by_cluster](const slurm::Change& change, const kube::Key& cluster) {
    return change.before->complete() != change.now->complete() ? named_by_cluster(cluster) : Keys{};
  });
  // The configuration that slurmctld has loaded shows whether a cluster has joined.
  wiring.wakes<Object>(*this, caches_.config_maps, of_owner(named_by_cluster), [](const Object& before, const Object& after) {
    const auto offered = [](const Object& map) { return slurmdbd_of(core::get_string(map.body, {"data", kSlurmConf})); };
    return joined_slurmdbd(before) != joined_slurmdbd(after) || offered(before) != offered(after);
  });
  for (kube::Cache<Object>* children : {&caches_.services, &caches_.config_maps, &caches_.stateful_sets}) {
    wiring.wakes<Object>(*this, *children, kube::controller_owner<Object>(resources::kAccounting.kind));
  }
  wiring.wakes<PodRecord>(*this, caches_.pods, instance_of(kAppAccounting));
  wiring.wakes<PodRecord>(*this, caches_.pods, instance_of(kAppDatabase));
}

}  // namespace op::accounting
