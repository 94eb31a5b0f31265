// Declares which objects the controller of Controllers reads, which changes start a pass, and the RBAC rights that it needs.
#include <algorithm>

#include "api/well_known.hpp"
#include "operator/common/deployments.hpp"
#include "operator/common/slinky.hpp"
#include "operator/common/watches.hpp"
#include "operator/controller/observe.hpp"
#include "operator/controller/plan.hpp"
#include "slinky/config_map.hpp"
#include "slinky/releases.hpp"
#include "slinky/workers.hpp"

namespace op::controller {
namespace {

using kube::Object;
using kube::PodRecord;

/// True if a user's topology file assigns places to workers of this Controller.
bool gives_places(const kube::Cache<Object>& config_maps, const kube::Key& controller) {
  const kube::ObjectPtr map = config_maps.find({controller.ns, config_map_name(controller.name)});
  return map != nullptr && read_places(*map).has_value();
}

bool some_appears_or_goes(const slurm::Change& change) {
  const auto has = [](const slurm::SnapshotPtr& snapshot, const std::string& node) {
    return snapshot != nullptr && snapshot->node(node) != nullptr;
  };
  return std::ranges::any_of(change.nodes,
                             [&](const std::string& node) { return has(change.before, node) != has(change.now, node); });
}

/// True if a change of the Accounting might change slurm.conf.
bool accounting_changed(const Object& before, const Object& after) {
  const auto serving = [](const Object& accounting) -> std::string {
    const core::Json* conditions = core::find(accounting.body, {"status", "conditions"});
    if (conditions == nullptr || !conditions->is_array()) return "";
    for (const core::Json& condition : *conditions) {
      if (core::get_string(condition, {"type"}) == api::kConditionServing) return core::get_string(condition, {"status"});
    }
    return "";
  };
  return intent_changed(before, after) || serving(before) != serving(after);
}

bool appears_or_goes(const PodRecord&, const PodRecord&) {
  return false;
}

}  // namespace

Caches::Caches(Wiring& wiring)
    : controllers(wiring.cache(caches::kControllers)),
      accountings(wiring.cache(caches::kAccountings)),
      nodesets(wiring.cache(caches::kNodeSets)),
      restapis(wiring.cache(caches::kRestApis)),
      services(wiring.cache(caches::kServices)),
      config_maps(wiring.cache(caches::kConfigMaps)),
      stateful_sets(wiring.cache(caches::kStatefulSets)),
      pod_disruption_budgets(wiring.cache(caches::kPodDisruptionBudgets)),
      claims(wiring.cache(caches::kClaims)),
      pods(wiring.cache(caches::kPods)),
      nodes(wiring.cache(caches::kNodes)),
      reads_nodes(wiring.reads_nodes()) {}

ControllerController::ControllerController(Wiring& wiring, std::string cluster_domain)
    : TypedController(controller::plan), wiring_(wiring), caches_(wiring), cluster_domain_(std::move(cluster_domain)) {
  wiring.run(*this);
  wiring.reconciles(resources::kController);
  wiring.makes(kube::resources::kService);
  wiring.makes(kube::resources::kConfigMap);
  wiring.makes(kube::resources::kSecret);
  wiring.makes(kube::resources::kStatefulSet);
  wiring.makes(kube::resources::kPodDisruptionBudget);
  wiring.makes(resources::kServiceMonitor);
  // A key rotation adds ephemeral containers to pods: see rotation.hpp.
  wiring.rights.add(kube::resources::kPod, {"patch"}, "ephemeralcontainers");
  wiring.reads(kube::resources::kCustomResourceDefinition);

  wiring.wakes<Object>(*this, caches_.controllers, kube::self<Object>());
  wiring.wakes<Object>(
      *this, caches_.accountings,
      [this](const Object& object) { return keys_of(caches_.controllers.by_index(kIndexAccounting, object.meta.key().str())); },
      accounting_changed);
  wiring.wakes<Object>(
      *this, caches_.stateful_sets,
      [this](const Object& object) {
        const kube::OwnerReference* owner = object.meta.controller_owner();
        if (owner == nullptr || owner->kind != resources::kAccounting.kind) return Keys{};
        return keys_of(caches_.controllers.by_index(kIndexAccounting, kube::Key{object.meta.ns, owner->name}.str()));
      },
      [](const Object& before, const Object& after) {
        return made_image(before, kAppAccounting) != made_image(after, kAppAccounting);
      });
  wiring.wakes<Object>(
      *this, caches_.config_maps,
      [this](const Object& object) {
        const kube::OwnerReference* owner = object.meta.controller_owner();
        if (owner == nullptr || owner->kind != resources::kAccounting.kind) return Keys{};
        return keys_of(caches_.controllers.by_index(kIndexAccounting, kube::Key{object.meta.ns, owner->name}.str()));
      },
      [](const Object& before, const Object& after) { return slurmdbd_release(&before) != slurmdbd_release(&after); });
  const auto referenced = [](const Object& object) { return Keys{controller_ref(object)}; };
  wiring.wakes<Object>(*this, caches_.nodesets, referenced, intent_changed);
  wiring.wakes<Object>(*this, caches_.restapis, referenced, intent_changed);
  for (kube::Cache<Object>* children :
       {&caches_.services, &caches_.config_maps, &caches_.stateful_sets, &caches_.pod_disruption_budgets}) {
    wiring.wakes<Object>(*this, *children, kube::controller_owner<Object>(resources::kController.kind));
  }
  wiring.wakes<Object>(*this, caches_.claims, [](const Object& claim) -> Keys {
    if (claim.meta.label(api::kLabelName) != kAppController) return {};
    return Keys{{claim.meta.ns, std::string(claim.meta.label(api::kLabelInstance))}};
  });
  wiring.wakes<PodRecord>(*this, caches_.pods, instance_of(kAppController));
  wiring.wakes<PodRecord>(*this, caches_.pods, instance_of(kAppBackup));
  wake_on_last_workers(wiring, *this, caches_.pods, caches_.controllers, [](const kube::Key& key) { return Keys{key}; });
  wiring.wakes<kube::NodeRecord>(
      *this, caches_.nodes,
      [this](const kube::NodeRecord&) {
        Keys keys;
        for (const kube::ObjectPtr& controller : caches_.controllers.all()) {
          const core::Json* topology = core::find(controller->body, {"spec", "topology"});
          const bool asks =
              topology != nullptr && topology->is_object() && !core::get_bool(controller->body, {"spec", "external"});
          if (asks) keys.push_back(controller->meta.key());
        }
        return keys;
      },
      [](const kube::NodeRecord& before, const kube::NodeRecord& after) { return before.meta.labels != after.meta.labels; });
  // If workers exist whose NodeSet is gone, slurm.conf retains the partition of that NodeSet. If workers have HTTP probes, the
  // user's slurm.conf must not set disable_http.
  wiring.wakes<PodRecord>(
      *this, caches_.pods,
      [this](const PodRecord& pod) -> Keys {
        if (pod.meta.label(api::kLabelName) != kAppWorker) return {};
        const kube::Key key{pod.meta.ns, std::string(pod.meta.label(api::kLabelCluster))};
        const kube::ObjectPtr owner = caches_.nodesets.find({pod.meta.ns, std::string(pod.meta.label(api::kLabelInstance))});
        return owner && controller_ref(*owner) == key && pod.http_probed.empty() ? Keys{} : Keys{key};
      },
      appears_or_goes);

  // The NodeSet controller sets a condition on a worker's pod, which shows since when Slurm has had the worker's node.
  wiring.wakes<PodRecord>(
      *this, caches_.pods,
      [this](const PodRecord& pod) -> Keys {
        if (pod.meta.label(api::kLabelName) != kAppWorker) return {};
        const kube::Key key{pod.meta.ns, std::string(pod.meta.label(api::kLabelCluster))};
        return gives_places(caches_.config_maps, key) ? Keys{key} : Keys{};
      },
      [](const PodRecord& before, const PodRecord& after) {
        return registered_since(before) != registered_since(after) || seen_in_slurm(before) != seen_in_slurm(after);
      });

  wiring.wakes_on_slurm(name(), [this](const slurm::Change& change, const kube::Key& key) -> Keys {
    // The Controller deletes node records that NodeSets left behind, so a change of a node that no NodeSet claims starts a
    // pass.
    const bool concerned = change.health || change.partitions ||
                           claims_of(change, caches_.nodesets.by_index(kIndexController, key.str())).unclaimed ||
                           (some_appears_or_goes(change) && gives_places(caches_.config_maps, key));
    return concerned ? Keys{key} : Keys{};
  });
}

}  // namespace op::controller
