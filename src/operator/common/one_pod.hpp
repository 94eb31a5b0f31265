// Why the one pod of a StatefulSet of ours does not come, where its own status cannot tell.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/common.hpp"
#include "cluster/status.hpp"
#include "kube/object.hpp"
#include "plan/plan.hpp"

namespace op {

/// Why an object of ours does not come, as only events tell it, or "" where none does. They are read, live, once it takes
/// longer than it should; no cache holds events. `ready`: the condition that is False for as long as it is missed, or null.
/// nullopt: it is too early, or they are being read.
[[nodiscard]] std::optional<std::string> told_by_events(const plan::Context& context, const api::Condition* ready,
                                                        std::string_view kind, const kube::ObjectMeta& object,
                                                        std::string_view reason, plan::Plan& plan);

/// A quota, an admission hook, a service account: the StatefulSet makes no pod. `set` may be null; `ready` as above.
[[nodiscard]] std::optional<Problem> find_missing_pod(const plan::Context& context, const api::Condition* ready,
                                                      const kube::Object* set, const std::vector<kube::PodPtr>& pods,
                                                      plan::Plan& plan);

/// Of a Kubernetes node that is lost only the last word of its kubelet is known, and the StatefulSet makes no other pod before
/// that says that this one has ended. It is wrong once the end is overdue. `daemon`: its container.
[[nodiscard]] std::optional<Problem> find_lost_pod(const plan::Context& context, const std::vector<kube::PodPtr>& pods,
                                                   std::string_view daemon, plan::Plan& plan);

}  // namespace op
