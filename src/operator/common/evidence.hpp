// Evidence that allows the deletion of workers whose cluster's Controller is being deleted.
#pragma once

#include <optional>

#include "kube/acts.hpp"

namespace op {

/// Proves that the user has deleted the cluster, because the cluster's Controller is being deleted. The evidence can be given
/// for every worker in the Controller's namespace. It never expires.
class OwnerEnds final : public kube::PodEvidence {
 public:
  /// Returns nullopt unless `controller` has a deletion_timestamp and is in the worker's namespace. The NodeSet controller
  /// omits the deletion_timestamp from `controller` until the Controller's status announces the end of the cluster.
  static std::optional<OwnerEnds> of(const plan::Observing& observing, const kube::ObjectMeta& controller,
                                     const kube::PodRecord& worker);

 private:
  using PodEvidence::PodEvidence;
};

}  // namespace op
