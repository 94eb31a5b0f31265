// Why the only pod of a StatefulSet of ours does not start, if its own status does not show it.
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

/// Why an object of ours is not created, from events; "": no event shows it. Events are read live once the creation takes
/// longer than it should; no cache has them. `ready`: the condition that is False while the object is missing, or null.
/// nullopt: it is too early, or the events are being read.
[[nodiscard]] std::optional<std::string> told_by_events(const plan::Context& context, const api::Condition* ready,
                                                        std::string_view kind, const kube::ObjectMeta& object,
                                                        std::string_view reason, plan::Plan& plan);

/// A quota, an admission webhook or a service account keeps the StatefulSet from creating its pod. `set` may be null; `ready`
/// as in told_by_events.
[[nodiscard]] std::optional<Problem> find_missing_pod(const plan::Context& context, const api::Condition* ready,
                                                      const kube::Object* set, const std::vector<kube::PodPtr>& pods,
                                                      plan::Plan& plan);

/// The pod is on a lost Kubernetes node. Only its kubelet's last report is known, and the StatefulSet creates no other pod
/// before the kubelet reports its end. Wrong only once the end is overdue. `daemon`: the pod's main container.
[[nodiscard]] std::optional<Problem> find_lost_pod(const plan::Context& context, const std::vector<kube::PodPtr>& pods,
                                                   std::string_view daemon, plan::Plan& plan);

}  // namespace op
