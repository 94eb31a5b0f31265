// The evidence that a cluster's Controller gives about its workers.
#pragma once

#include <optional>

#include "kube/acts.hpp"

namespace op {

/// The user ended the cluster: its Controller is terminating. Holds for all pods of its namespace, and for ever.
class OwnerEnds final : public kube::PodEvidence {
 public:
  /// `controller`: without deletion_timestamp where it goes alone, or waits for its workers' jobs.
  static std::optional<OwnerEnds> of(const plan::Observing& observing, const kube::ObjectMeta& controller,
                                     const kube::PodRecord& worker);

 private:
  using PodEvidence::PodEvidence;
};

}  // namespace op
