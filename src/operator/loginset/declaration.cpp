// Declares what the LoginSet controller reads, what wakes it, and the rights that it needs.
#include "api/well_known.hpp"
#include "operator/common/slinky.hpp"
#include "operator/common/watches.hpp"
#include "operator/loginset/observe.hpp"
#include "operator/loginset/plan.hpp"
#include "slinky/releases.hpp"

namespace op::loginset {

using kube::Object;
using kube::PodRecord;

Caches::Caches(Wiring& wiring)
    : loginsets(wiring.cache(caches::kLoginSets)),
      controllers(wiring.cache(caches::kControllers)),
      services(wiring.cache(caches::kServices)),
      config_maps(wiring.cache(caches::kConfigMaps)),
      deployments(wiring.cache(caches::kDeployments)),
      endpoint_slices(wiring.cache(caches::kEndpointSlices)),
      pods(wiring.cache(caches::kPods)) {}

LoginSetController::LoginSetController(Wiring& wiring, std::string cluster_domain)
    : TypedController(loginset::plan), caches_(wiring), cluster_domain_(std::move(cluster_domain)) {
  wiring.run(*this);
  wiring.reconciles(resources::kLoginSet);
  wiring.makes(kube::resources::kSecret);
  wiring.makes(kube::resources::kConfigMap);
  wiring.makes(kube::resources::kService);
  wiring.makes(kube::resources::kDeployment);
  wiring.makes(kube::resources::kEndpointSlice);
  // The operator annotates pods, so that kubelets refresh authorized keys at once, and so that idle pods are deleted first.
  wiring.rights.add(kube::resources::kPod, {"patch"});
  // The log of the sidecar `sessions` shows how many sessions a pod has.
  wiring.rights.add(kube::resources::kPod, {"get"}, "log");

  wiring.wakes<Object>(*this, caches_.loginsets, kube::self<Object>());
  const auto of_controller = [this](const kube::Key& key) {
    return keys_of(caches_.loginsets.by_index(kIndexController, key.str()));
  };
  wiring.wakes<Object>(
      *this, caches_.controllers, [of_controller](const Object& object) { return of_controller(object.meta.key()); },
      intent_changed);
  for (kube::Cache<Object>* children : {&caches_.services, &caches_.config_maps, &caches_.deployments}) {
    wiring.wakes<Object>(*this, *children, kube::controller_owner<Object>(resources::kLoginSet.kind));
  }
  // The mapper uses the labels of the EndpointSlice, because a LoginSet that is being deleted does not own its EndpointSlice.
  wiring.wakes<Object>(*this, caches_.endpoint_slices, instance_of<Object>(kAppLogin));
  // Login pods must not have a later release than slurmctld, so a changed release of slurmctld wakes the LoginSets.
  wiring.wakes<Object>(*this, caches_.config_maps, of_owner(of_controller), [](const Object& before, const Object& after) {
    return slurmctld_release(&before) != slurmctld_release(&after);
  });
  wiring.wakes<PodRecord>(*this, caches_.pods, instance_of(kAppLogin));
}

}  // namespace op::loginset
