// Finds why the only pod of a StatefulSet of ours does not start, if its own status does not show it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/common.hpp"
#include "kube/object.hpp"
#include "operator/common/slinky.hpp"
#include "plan/plan.hpp"
#include "slinky/status.hpp"

namespace op {

/// Returns the reason in events why an object of ours is not created. "": no event gives a reason. nullopt: it is too early, or
/// the events are being read. No cache has events, so they are read live once the creation takes longer than it should.
/// `ready`: the condition that is False while the object is missing, or null.
[[nodiscard]] std::optional<std::string> told_by_events(const plan::Context& context, const api::Condition* ready,
                                                        std::string_view kind, const kube::ObjectMeta& object,
                                                        std::string_view reason, plan::Plan& plan);

/// Returns a problem if the StatefulSet has not created its pod, for example because of a quota, an admission webhook or a
/// missing service account. `set` may be null. `ready` is as in told_by_events.
[[nodiscard]] std::optional<Problem> find_missing_pod(const plan::Context& context, const api::Condition* ready,
                                                      const kube::Object* set, const std::vector<kube::PodPtr>& pods,
                                                      plan::Plan& plan);

/// Returns a problem if the pod is on a lost Kubernetes node. Then only the last report of its kubelet is known, and the
/// StatefulSet creates no new pod until the kubelet reports that the pod has ended. The problem is an error only if that report
/// is overdue. `daemon`: the main container of the pod.
[[nodiscard]] std::optional<Problem> find_lost_pod(const plan::Context& context, const std::vector<kube::PodPtr>& pods,
                                                   std::string_view daemon, plan::Plan& plan);

}  // namespace op
