// Evidence about workers that comes from the cluster's Controller.
#pragma once

#include <optional>

#include "kube/acts.hpp"

namespace op {

/// Proves that the user deleted the cluster: its Controller is terminating. Covers all pods of the namespace, and never
/// expires.
class OwnerEnds final : public kube::PodEvidence {
 public:
  /// Pass `controller` without deletion_timestamp (returns nullopt) if its children stay, or while it waits for workers' jobs.
  static std::optional<OwnerEnds> of(const plan::Observing& observing, const kube::ObjectMeta& controller,
                                     const kube::PodRecord& worker);

 private:
  using PodEvidence::PodEvidence;
};

}  // namespace op
