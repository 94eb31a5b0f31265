#include "operator/governance/observe.hpp"

#include <algorithm>
#include <utility>

#include "slinky/status.hpp"

namespace op::governance {
namespace {

/// Adds the evidence for QOS whose resources are being deleted.
void find_unused(const run::Observation& context, Observed& out) {
  for (const QosResource& resource : out.qos) {
    if (!resource.object->meta.terminating() || !out.view->qos.complete()) continue;
    const std::string name = resource.qos_name();
    for (const auto& [key, row] : *out.view->qos.rows) {
      if (slurm::accounting::folded(key) != name) continue;
      if (auto evidence = slurm::UnusedQos::of(context.observing, out.database, *row, *out.view))
        out.unused.emplace(name, *std::move(evidence));
    }
  }
}

}  // namespace

std::shared_ptr<const Observed> GovernanceController::observe_typed(const kube::Key& key, kube::Recorder& /*recorder*/,
                                                                    const run::Observation& context) {
  auto out = std::make_shared<Observed>();
  out->context = context;
  out->key = key;
  out->database = accounting_key(key.ns, key.name);
  std::vector<kube::ObjectPtr> objects = caches_.qos.by_index(kIndexAccounting, key.str());
  if (objects.empty()) return out;
  out->accounting = caches_.accountings.find(key);
  std::ranges::sort(objects, {}, [](const kube::ObjectPtr& each) { return std::pair(each->meta.created, each->meta.name); });
  for (const kube::ObjectPtr& object : objects) {
    QosResource& resource = out->qos.emplace_back();
    resource.object = object;
    resource.parse_error = read_object(*object, resource.qos);
  }
  out->view = wiring_.accounting(out->database);
  if (out->view) find_unused(context, *out);
  return out;
}

}  // namespace op::governance
