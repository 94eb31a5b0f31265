// Declares what the RestApi controller reads, what wakes it, and the rights that it needs.
#include "api/well_known.hpp"
#include "operator/common/slinky.hpp"
#include "operator/common/watches.hpp"
#include "operator/restapi/observe.hpp"
#include "operator/restapi/plan.hpp"
#include "slinky/config_map.hpp"
#include "slinky/releases.hpp"

namespace op::restapi {

using kube::Object;
using kube::PodRecord;

Caches::Caches(Wiring& wiring)
    : restapis(wiring.cache(caches::kRestApis)),
      controllers(wiring.cache(caches::kControllers)),
      nodesets(wiring.cache(caches::kNodeSets)),
      services(wiring.cache(caches::kServices)),
      config_maps(wiring.cache(caches::kConfigMaps)),
      deployments(wiring.cache(caches::kDeployments)),
      pods(wiring.cache(caches::kPods)) {}

RestApiController::RestApiController(Wiring& wiring) : TypedController(restapi::plan), caches_(wiring) {
  wiring.run(*this);
  wiring.reconciles(resources::kRestApi);
  wiring.makes(kube::resources::kService);
  wiring.makes(kube::resources::kDeployment);
  // Pod templates name Secrets and ConfigMaps, and spec.sssdConfRef names a Secret. So the operator reads Secrets and
  // ConfigMaps.
  wiring.reads(kube::resources::kSecret);
  wiring.reads(kube::resources::kConfigMap);

  const auto of_controller = [this](const kube::Key& key) {
    return keys_of(caches_.restapis.by_index(kIndexController, key.str()));
  };
  wiring.wakes<Object>(*this, caches_.restapis, kube::self<Object>());
  wiring.wakes<Object>(
      *this, caches_.controllers, [of_controller](const Object& object) { return of_controller(object.meta.key()); },
      intent_changed);
  wiring.wakes<Object>(
      *this, caches_.nodesets, [of_controller](const Object& object) { return of_controller(controller_ref(object)); },
      intent_changed);
  wake_on_last_workers(wiring, *this, caches_.pods, caches_.controllers, of_controller);
  // slurmrestd starts once there is a slurm.conf, and can need a restart when slurm.conf changes.
  wiring.wakes<Object>(*this, caches_.config_maps, of_owner(of_controller), [](const Object& before, const Object& after) {
    const auto text = [](const Object& map) { return core::get_string(map.body, {"data", kSlurmConf}); };
    return text(before) != text(after) || slurmctld_release(&before) != slurmctld_release(&after);
  });
  for (kube::Cache<Object>* children : {&caches_.services, &caches_.deployments}) {
    wiring.wakes<Object>(*this, *children, kube::controller_owner<Object>(resources::kRestApi.kind));
  }
  wiring.wakes<PodRecord>(*this, caches_.pods, instance_of(kAppRestApi));
}

}  // namespace op::restapi
