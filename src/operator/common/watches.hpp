// Maps and filters of what wakes several controllers; see cluster/wiring.hpp.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/well_known.hpp"
#include "cluster/wiring.hpp"

namespace op {

/// A pod of that app (kAppRestApi), or another child, to the object that it is of, by its labels.
template <class Record = kube::PodRecord>
[[nodiscard]] kube::Mapper<Record> instance_of(std::string_view app) {
  return [app](const Record& record) -> Keys {
    if (record.meta.label(api::kLabelName) != app) return {};
    return {{record.meta.ns, std::string(record.meta.label(api::kLabelInstance))}};
  };
}

/// What a Controller owns, such as its configuration, to `of_controller` of that Controller.
[[nodiscard]] std::function<Keys(const kube::Object&)> of_owner(std::function<Keys(const kube::Key&)> of_controller);

/// Workers that appear or go matter to those who wait for the last of them: to `of_controller` of a Controller that is being
/// deleted.
void wake_on_last_workers(Wiring& wiring, const run::Controller& who, kube::Cache<kube::PodRecord>& pods,
                          const kube::Cache<kube::Object>& controllers, std::function<Keys(const kube::Key&)> of_controller);

/// The Controller of a cluster.
[[nodiscard]] kube::Key controller_key(const slurm::ClusterKey& cluster);

/// Of the nodes that a change of Slurm is about, those that belong to these NodeSets of the cluster, by their features; a node
/// that names none of them may be anybody's.
struct Claims {
  std::vector<kube::Key> nodesets;
  bool unclaimed = false;  ///< Some node names none.
};
[[nodiscard]] Claims claims_of(const slurm::Change& change, const std::vector<kube::ObjectPtr>& nodesets);

}  // namespace op
