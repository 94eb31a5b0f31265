// Maps changed objects to the keys that they wake, for several controllers; see slinky/wiring.hpp.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/well_known.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/wiring.hpp"

namespace op {

/// Returns a mapper for the pods, or other children, of an app such as kAppRestApi. It maps a child to the object that the
/// child belongs to according to its labels.
template <class Record = kube::PodRecord>
[[nodiscard]] kube::Mapper<Record> instance_of(std::string_view app) {
  return [app](const Record& record) -> Keys {
    if (record.meta.label(api::kLabelName) != app) return {};
    return {{record.meta.ns, std::string(record.meta.label(api::kLabelInstance))}};
  };
}

/// Returns a mapper from an object that a Controller owns, such as its configuration, to the keys that `of_controller` returns
/// for this Controller.
[[nodiscard]] std::function<Keys(const kube::Object&)> of_owner(std::function<Keys(const kube::Key&)> of_controller);

/// Wakes the keys that `of_controller` returns for a Controller that is being deleted, each time one of its workers appears or
/// is gone: objects of the cluster may wait until the last worker is gone.
void wake_on_last_workers(Wiring& wiring, const run::Controller& who, kube::Cache<kube::PodRecord>& pods,
                          const kube::Cache<kube::Object>& controllers, std::function<Keys(const kube::Key&)> of_controller);

/// The NodeSets of the cluster that own the changed Slurm nodes, by their features.
struct Claims {
  std::vector<kube::Key> nodesets;
  bool unclaimed = false;  ///< A changed node has no feature of these NodeSets and may belong to any of them.
};
[[nodiscard]] Claims claims_of(const slurm::Change& change, const std::vector<kube::ObjectPtr>& nodesets);

}  // namespace op
