#include "operator/common/watches.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "api/well_known.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/names.hpp"

namespace op {

std::function<Keys(const kube::Object&)> of_owner(std::function<Keys(const kube::Key&)> of_controller) {
  return [of_controller = std::move(of_controller)](const kube::Object& object) -> Keys {
    const kube::OwnerReference* owner = object.meta.controller_owner();
    if (owner == nullptr || owner->kind != resources::kController.kind) return {};
    return of_controller({object.meta.ns, owner->name});
  };
}

void wake_on_last_workers(Wiring& wiring, const run::Controller& who, kube::Cache<kube::PodRecord>& pods,
                          const kube::Cache<kube::Object>& controllers, std::function<Keys(const kube::Key&)> of_controller) {
  wiring.wakes<kube::PodRecord>(
      who, pods,
      [&controllers, of_controller = std::move(of_controller)](const kube::PodRecord& pod) -> Keys {
        if (pod.meta.label(api::kLabelName) != kAppWorker) return {};
        const kube::Key key{pod.meta.ns, std::string(pod.meta.label(api::kLabelCluster))};
        const kube::ObjectPtr owner = controllers.find(key);
        return owner && owner->meta.terminating() ? of_controller(key) : Keys{};
      },
      [](const kube::PodRecord&, const kube::PodRecord&) { return false; });
}

Claims claims_of(const slurm::Change& change, const std::vector<kube::ObjectPtr>& nodesets) {
  std::map<std::string, kube::Key, std::less<>> by_feature;
  for (const kube::ObjectPtr& object : nodesets) by_feature[slurm_node_set_name(*object)] = object->meta.key();
  Claims out;
  for (const std::string& name : change.nodes) {
    bool found = false;
    for (const slurm::SnapshotPtr& snapshot : {change.before, change.now}) {
      const slurm::Node* node = snapshot ? snapshot->node(name) : nullptr;
      if (node == nullptr) continue;
      for (const std::string& feature : node->features) {
        const auto it = by_feature.find(feature);
        if (it == by_feature.end()) continue;
        out.nodesets.push_back(it->second);
        found = true;
      }
    }
    out.unclaimed = out.unclaimed || !found;
  }
  return out;
}

}  // namespace op
