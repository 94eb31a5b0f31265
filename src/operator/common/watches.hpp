// Functions with which several controllers map a changed object to the keys to reconcile; see slinky/wiring.hpp.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/well_known.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/wiring.hpp"

namespace op {

/// Returns a mapper for the pods, or other children, of an app such as kAppRestApi. The mapper maps a child to the object that
/// the instance label of the child names.
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

/// While a Controller is being deleted, wakes the keys that `of_controller` returns for this Controller, each time one of the
/// Controller's workers appears or is gone. The keys must be woken because objects of the cluster can wait until the last
/// worker of the cluster is gone.
void wake_on_last_workers(Wiring& wiring, const run::Controller& who, kube::Cache<kube::PodRecord>& pods,
                          const kube::Cache<kube::Object>& controllers, std::function<Keys(const kube::Key&)> of_controller);

/// The NodeSets of a cluster to which the changed Slurm nodes belong, according to the features of the nodes.
struct Claims {
  std::vector<kube::Key> nodesets;
  bool unclaimed = false;  ///< A changed node has no feature of a NodeSet, so it can belong to any NodeSet.
};
[[nodiscard]] Claims claims_of(const slurm::Change& change, const std::vector<kube::ObjectPtr>& nodesets);

}  // namespace op
