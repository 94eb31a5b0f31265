// Evidence about workers that comes from the cluster's Controller.
#pragma once

#include <optional>

#include "kube/acts.hpp"

namespace op {

/// Proves that the user deleted the cluster: its Controller is being deleted. Covers all pods in the namespace of the
/// Controller. Never expires.
class OwnerEnds final : public kube::PodEvidence {
 public:
  /// Returns nullopt unless `controller` has a deletion_timestamp. Callers clear that if no worker may be deleted at once.
  static std::optional<OwnerEnds> of(const plan::Observing& observing, const kube::ObjectMeta& controller,
                                     const kube::PodRecord& worker);

 private:
  using PodEvidence::PodEvidence;
};

}  // namespace op
