// spec.pinToNode: a worker returns to the Kubernetes node on which the previous worker of its ordinal ran. status.ordinalToNode
// records that node.
#include <fmt/format.h>

#include <tuple>

#include "api/well_known.hpp"
#include "operator/nodeset/parts.hpp"

namespace op::nodeset {
namespace {

/// kAsked: the largest number of Kubernetes nodes that one pass reads from the API server. kAskAgain: the time until a pass
/// reads these nodes again.
constexpr std::size_t kAsked = 8;
constexpr core::Duration kAskAgain{30000};

/// True if a direct read from the API server shows that the Kubernetes node is gone. The cache is not enough, because it might
/// lack a node that exists.
bool is_gone(const View& view, const std::string& node, std::size_t& asked, Draft& draft) {
  const LiveObject object = pinned_host(node);
  const auto answer = view.in.live.find(object);
  if (answer != view.in.live.end()) {
    if (answer->second.presence == kube::Presence::kAbsent) return true;
    draft.wake_after(kAskAgain, "a Kubernetes node that workers are pinned to may be gone");
    return false;
  }
  if (asked++ < kAsked) std::ignore = ask(view, object, draft);
  return false;
}

}  // namespace

std::optional<std::string> recorded_pin(const Observed& in, const SlotKey& key) {
  const api::NodeSetSpec& spec = in.nodeset.spec;
  if (!spec.pin_to_node || spec.scaling_mode != api::ScalingMode::kStatefulSet) return std::nullopt;
  if (!key.numbered()) return std::nullopt;
  const auto found = in.nodeset.status.ordinal_to_node.find(std::to_string(key.ordinal));
  return found == in.nodeset.status.ordinal_to_node.end() ? std::nullopt : std::optional(found->second);
}

api::StringMap judge_pins(const View& view, const Workers& workers, Draft& draft) {
  const api::NodeSetSpec& spec = view.in.nodeset.spec;
  const api::StringMap& before = view.in.nodeset.status.ordinal_to_node;
  if (!view.in.invalid.empty() || view.goal == Goal::kHold) return before;
  if (!spec.pin_to_node || spec.scaling_mode != api::ScalingMode::kStatefulSet) return {};
  api::StringMap out;
  std::size_t asked = 0;
  for (const auto& [ordinal, node] : before) {
    if (view.in.nodes.contains(node) || !is_gone(view, node, asked, draft)) {
      out.emplace(ordinal, node);
      continue;
    }
    draft.lasting_event("Warning", "PinDropped", "Sync",
                        fmt::format("Worker {}-{} is no longer pinned to Kubernetes node {}, which is gone",
                                    view.in.meta().name, ordinal, node));
  }
  for (const Worker& worker : workers) {
    if (worker.key.numbered() && worker.pod->phase == "Running" && worker.kube_node)
      out[std::to_string(worker.key.ordinal)] = worker.pod->node_name;
  }
  return out;
}

bool drops_pin(const View& view, const SlotKey& key) {
  const std::optional<std::string> node = recorded_pin(view.in, key);
  if (!node || view.in.nodes.contains(*node)) return false;
  const auto answer = view.in.live.find(pinned_host(*node));
  return answer != view.in.live.end() && answer->second.presence == kube::Presence::kAbsent;
}

bool awaits_pin(const View& view, const Worker& worker) {
  if (!view.in.nodeset.spec.pin_to_node || worker.pod->phase != "Running" || !worker.kube_node || !worker.key.numbered())
    return false;
  if (view.in.nodeset.spec.scaling_mode != api::ScalingMode::kStatefulSet) return false;
  return recorded_pin(view.in, worker.key) != worker.pod->node_name;
}

}  // namespace op::nodeset
