#include "bridge/nodes/taints.hpp"

#include <algorithm>

#include "bridge/common/names.hpp"

namespace bridge::nodes {
namespace {

using core::Json;

constexpr std::size_t kValueAtMost = 63;

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

const kube::PodCondition* condition_of(const kube::SchedulingNodeRecord& node) {
  const auto it = std::ranges::find(node.conditions, kConditionNode, &kube::PodCondition::type);
  return it == node.conditions.end() ? nullptr : &*it;
}

}  // namespace

std::string taint_value(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool kept = is_alphanumeric(c) || c == '_' || c == '.';
    if (!kept && (out.empty() || out.back() == '-')) continue;
    out += kept ? c : '-';
    if (out.size() == kValueAtMost) break;
  }
  while (!out.empty() && !is_alphanumeric(out.back())) out.pop_back();
  const auto first = std::ranges::find_if(out, is_alphanumeric);
  out.erase(out.begin(), first);
  return out;
}

plan::ActPtr set_taints(const kube::SchedulingNodeRecord& node, const Effects& wanted) {
  Effects missing = wanted;
  Json patch = Json::array();
  // From the last one, because each removal moves those behind it.
  for (std::size_t i = node.taints.size(); i-- > 0;) {
    const kube::Taint& taint = node.taints[i];
    if (taint.key != kTaintManagedNode || missing.erase({taint.effect, taint.value}) > 0) continue;
    patch.push_back({{"op", "remove"}, {"path", "/spec/taints/" + std::to_string(i)}});
  }
  bool has_list = !node.taints.empty();
  for (const auto& [effect, value] : missing) {
    Json taint{{"key", kTaintManagedNode}, {"effect", effect}};
    if (!value.empty()) taint["value"] = value;
    patch.push_back({{"op", "add"},
                     {"path", has_list ? "/spec/taints/-" : "/spec/taints"},
                     {"value", has_list ? std::move(taint) : Json::array({std::move(taint)})}});
    has_list = true;
  }
  return patch.empty() ? nullptr : kube::json_patch(kube::resources::kNode, node.meta, std::move(patch));
}

plan::ActPtr set_condition(const kube::SchedulingNodeRecord& node, const Condition& wanted, core::WallTime now) {
  const std::string status = wanted.status ? "True" : "False";
  const kube::PodCondition* have = condition_of(node);
  if (have != nullptr && have->status == status && have->reason == wanted.reason && have->message == wanted.message)
    return nullptr;
  Json entry{{"type", kConditionNode}, {"status", status}, {"reason", wanted.reason}, {"message", wanted.message}};
  if (have == nullptr || have->status != status) entry["lastTransitionTime"] = core::format_rfc3339(now);
  Json patch{{"status", {{"conditions", Json::array({std::move(entry)})}}}};
  return kube::patch_any_version(kube::resources::kNode, node.meta, std::move(patch), kube::PatchType::kStrategic, "status");
}

bool has_condition(const kube::SchedulingNodeRecord& node) {
  return condition_of(node) != nullptr;
}

bool is_tainted(const kube::SchedulingNodeRecord& node) {
  return std::ranges::find(node.taints, kTaintManagedNode, &kube::Taint::key) != node.taints.end();
}

}  // namespace bridge::nodes
