#include "operator/common/one_pod.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "operator/common/events.hpp"

namespace op {

std::optional<std::string> told_by_events(const plan::Context& context, const api::Condition* ready, std::string_view kind,
                                          const kube::ObjectMeta& object, std::string_view reason, plan::Plan& plan) {
  constexpr core::Duration kMade{15000};
  /// The time between two reads of the events. The events are read again because the cause can change: one cause can be solved
  /// while another cause remains.
  constexpr core::Duration kReadAgain{60000};
  /// An event counts if it is at most this much older than the last change of the condition. The event can precede the change
  /// of the condition, and the two times come from the clocks of different machines.
  constexpr core::Duration kSlack{60000};
  if (ready == nullptr || ready->status == api::ConditionStatus::kTrue || !ready->last_transition_time) return {};
  const core::Duration left = kMade - (context.now - *ready->last_transition_time);
  if (left > core::Duration{0}) {
    plan.wake_after(std::min(left, kMade), "a missing pod is reported");
    return {};
  }
  plan::Need need = need_events(kind, object, reason);
  const auto events = context.facts.find(need.id);
  if (events == context.facts.end()) {
    plan.need(std::move(need));
    return {};
  }
  plan.wake_after(kReadAgain, "the reason why the pod is missing may change");
  return newest_note(events->second, *ready->last_transition_time - kSlack);
}

std::optional<Problem> find_missing_pod(const plan::Context& context, const api::Condition* ready, const kube::Object* set,
                                        const std::vector<kube::PodPtr>& pods, plan::Plan& plan) {
  if (set == nullptr || !pods.empty()) return {};
  if (core::get_int(set->body, {"status", "observedGeneration"}) == 0) return {};
  const kube::ObjectMeta& meta = set->meta;
  const auto told = told_by_events(context, ready, "StatefulSet", meta, "FailedCreate", plan);
  if (!told) return {};
  const std::string& why = *told;
  const std::string where = "; for the reason, run `kubectl -n " + meta.ns + " describe statefulset " + meta.name + "`";
  return Problem{"PodNotCreated", "StatefulSet " + meta.name + " has not created its pod" + (why.empty() ? where : ": " + why)};
}

std::optional<Problem> find_lost_pod(const plan::Context& context, const std::vector<kube::PodPtr>& pods,
                                     std::string_view daemon, plan::Plan& plan) {
  constexpr core::Duration kOverdue{60000};
  std::optional<Problem> out;
  for (const kube::PodPtr& pod : pods) {
    if (pod->ready() || pod->node_name.empty()) continue;
    if (!pod->meta.deletion_timestamp) {
      const auto found = std::ranges::find(pod->containers, daemon, &kube::ContainerState::name);
      if (!out && found != pod->containers.end() && found->ready) {
        out = {"Waiting",
               fmt::format("Kubernetes node {}, where {} was last seen running, does not respond", pod->node_name, daemon),
               Problem::Kind::kComing};
      }
      continue;
    }
    const core::Duration left = *pod->meta.deletion_timestamp + kOverdue - context.now;
    if (left > core::Duration{0}) {
      plan.wake_after(std::min(left, 2 * kOverdue), "the pod's end is overdue then");
      continue;
    }
    return Problem{
        "PodLost",
        fmt::format("pod {} should have ended by {}, but Kubernetes node {} does not confirm it: {} starts again when "
                    "that node responds. If the machine is off, delete the Node, or taint it with "
                    "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
                    pod->meta.name, core::format_rfc3339(*pod->meta.deletion_timestamp), pod->node_name, daemon)};
  }
  return out;
}

}  // namespace op
