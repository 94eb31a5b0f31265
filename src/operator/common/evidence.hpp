// Evidence about workers that comes from the cluster's Controller.
#pragma once

#include <optional>

#include "kube/acts.hpp"

namespace op {

/// Proves that the user deleted the cluster: its Controller is being deleted. Covers all pods in the namespace of the
/// Controller. Never expires.
class OwnerEnds final : public kube::PodEvidence {
 public:
  /// Returns nullopt unless `controller` has a deletion_timestamp. The NodeSet controller passes the metadata without it until
  /// the Controller's status announces the end of the cluster.
  static std::optional<OwnerEnds> of(const plan::Observing& observing, const kube::ObjectMeta& controller,
                                     const kube::PodRecord& worker);

 private:
  using PodEvidence::PodEvidence;
};

}  // namespace op
