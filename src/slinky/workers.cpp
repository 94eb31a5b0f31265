#include "slinky/workers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/well_known.hpp"
#include "slinky/names.hpp"
#include "slinky/worker_names.hpp"

namespace slinky {
namespace {

constexpr std::string_view kMissing = "Slurm has had no such node since ";
constexpr std::string_view kRegistered = "Slurm has had its node since ";

/// Returns the time at the end of the condition's message. nullopt if the message does not begin with `begin`.
std::optional<core::WallTime> time_of(const kube::PodCondition* condition, std::string_view begin) {
  if (condition == nullptr || !condition->message.starts_with(begin)) return {};
  const core::Result<core::WallTime> since = core::parse_rfc3339(std::string_view(condition->message).substr(begin.size()));
  return since ? std::optional(*since) : std::nullopt;
}

/// In any cluster, this many workers are allowed to be missing, because an administrator possibly deleted a node or two.
constexpr std::size_t kFew = 2;
/// In large clusters, one of every kFewOf workers is allowed to be missing.
constexpr std::size_t kFewOf = 20;

/// True if Slurm should have the worker's node. False if the node's name is unknown, which is possible with host networking.
bool expected(const kube::PodRecord& pod, std::optional<core::WallTime> state_since) {
  if (pod.meta.terminating() || !seen_in_slurm(pod) || !pod.meta.annotation(api::kAnnotationDeletionEvidence).empty())
    return false;
  if (pod.host_network && stamped_node_name(pod).empty()) return false;
  return !state_since || (pod.ready_since && *pod.ready_since > *state_since);
}

}  // namespace

bool is_true(std::string_view text) {
  return text == "true" || text == "True" || text == "TRUE" || text == "1" || text == "t" || text == "T";
}

bool stops_deletions(const kube::ObjectMeta& controller) {
  // Administrators set the switch in an emergency. So every value except an explicit "no" turns the switch on.
  const std::string_view text = controller.annotation(api::kAnnotationStopDeletions);
  return !text.empty() && text != "false" && text != "False" && text != "FALSE" && text != "0" && text != "f" && text != "F" &&
         text != "no" && text != "off";
}

bool slurmd_started(const kube::PodRecord& pod) {
  return std::ranges::any_of(pod.containers, [](const kube::ContainerState& container) {
    return container.name == kAppWorker && container.started_once;
  });
}

bool seen_in_slurm(const kube::PodRecord& pod) {
  if (!pod.meta.annotation(api::kAnnotationRegistered).empty()) return true;
  return std::ranges::any_of(
      pod.conditions, [](const kube::PodCondition& condition) { return condition.type.starts_with(api::kPodConditionPrefix); });
}

bool began_before(const slurm::Node& node, const kube::PodRecord& pod) {
  constexpr core::Duration kSkew{1000};
  return node.slurmd_start_time && *node.slurmd_start_time + kSkew < pod.meta.created;
}

bool has_registered(const kube::PodRecord& pod, const slurm::Node& node) {
  return node.slurmd_start_time && slurmd_started(pod) && !began_before(node, pod);
}

std::string missing_text(core::WallTime since) {
  return std::string(kMissing) + core::format_rfc3339(since);
}

std::optional<core::WallTime> missing_since(const kube::PodRecord& pod) {
  return time_of(pod.condition(std::string(api::kPodConditionPrefix) + "Unknown"), kMissing);
}

std::string registered_text(core::WallTime since) {
  return std::string(kRegistered) + core::format_rfc3339(since);
}

std::optional<core::WallTime> registered_since(const kube::PodRecord& pod) {
  return time_of(pod.condition(api::kPodConditionRegistered), kRegistered);
}

core::WallTime youngest(const std::vector<kube::PodPtr>& pods) {
  core::WallTime last{};
  for (const kube::PodPtr& pod : pods) last = std::max(last, pod->meta.created);
  return last;
}

std::string doubt_of(const std::vector<kube::PodPtr>& workers, const slurm::Snapshot& snapshot,
                     std::optional<core::WallTime> state_since) {
  if (snapshot.other_cluster) return snapshot.error;
  if (!snapshot.complete()) return "";
  std::vector<const kube::PodRecord*> known;
  std::size_t missing = 0, silent = 0;
  std::optional<core::WallTime> first;
  for (const kube::PodPtr& pod : workers) {
    if (!expected(*pod, state_since)) continue;
    if (const slurm::Node* node = snapshot.node(slurm_node_name(*pod))) {
      known.push_back(pod.get());
      if (node->state.has("NOT_RESPONDING") && slurmd_started(*pod)) ++silent;
    } else if (pod->ready()) {
      ++missing;
      if (const auto since = missing_since(*pod)) first = first ? std::min(*first, *since) : *since;
    }
  }
  const std::size_t all = known.size() + missing;
  // Does not count workers that became ready after Slurm lost the nodes, because the loss does not concern these workers.
  const auto stayed = static_cast<std::size_t>(std::ranges::count_if(
      known, [&](const kube::PodRecord* pod) { return !first || (pod->ready_since && *pod->ready_since <= *first); }));
  if (missing > std::max(kFew, (stayed + missing) / kFewOf) || missing > stayed)
    return fmt::format("Slurm does not know {} of {} workers that were registered", missing, all);
  if (silent >= kFew && 2 * silent > all) return fmt::format("Slurm cannot reach {} of {} workers", silent, all);
  return "";
}

}  // namespace slinky
