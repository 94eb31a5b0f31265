// Finds out why the single pod of one of the operator's StatefulSets does not start, if the pod's status does not show the
// reason.
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

/// Returns the note of the newest event about `object` with this `reason`. The note explains why something was not created. "":
/// there is no such event. nullopt: `ready` is not False, it is too early to ask, or the events are being read. No cache has
/// events, so the operator reads the events live, and only once the creation takes longer than it should. `ready`: the
/// condition that is False until the creation succeeds, or null.
[[nodiscard]] std::optional<std::string> told_by_events(const plan::Context& context, const api::Condition* ready,
                                                        std::string_view kind, const kube::ObjectMeta& object,
                                                        std::string_view reason, plan::Plan& plan);

/// Returns a problem if the StatefulSet has not created its pod, for example because of a quota, an admission webhook or a
/// missing service account. `set` null: the StatefulSet does not exist. `ready` is as in told_by_events.
[[nodiscard]] std::optional<Problem> find_missing_pod(const plan::Context& context, const api::Condition* ready,
                                                      const kube::Object* set, const std::vector<kube::PodPtr>& pods,
                                                      plan::Plan& plan);

/// Returns a problem if the pod's Kubernetes node does not respond. In that case, only the last report of the node's kubelet is
/// known, and Kubernetes creates no new pod until the kubelet confirms that the pod has ended. The problem counts as an error
/// only if this confirmation is overdue. `daemon`: the name of the pod's main container.
[[nodiscard]] std::optional<Problem> find_lost_pod(const plan::Context& context, const std::vector<kube::PodPtr>& pods,
                                                   std::string_view daemon, plan::Plan& plan);

}  // namespace op
