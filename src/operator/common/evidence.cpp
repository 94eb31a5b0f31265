#include "operator/common/evidence.hpp"

namespace op {

std::optional<OwnerEnds> OwnerEnds::of(const plan::Observing& observing, const kube::ObjectMeta& controller,
                                       const kube::PodRecord& worker) {
  if (!controller.terminating() || controller.ns != worker.meta.ns) return std::nullopt;
  return OwnerEnds(observing, worker, "OwnerEnds", controller.key().str() + " is being deleted", std::nullopt);
}

}  // namespace op
