#include "bridge/common/caches.hpp"

#include <string>
#include <vector>

#include "bridge/common/groups.hpp"
#include "bridge/common/states.hpp"
#include "slinky/caches.hpp"

namespace bridge {
namespace {

using Names = std::vector<std::string>;

Names node_of_pod(const kube::SchedulingPodRecord& pod) {
  return pod.node_name.empty() ? Names{} : Names{pod.node_name};
}

Names place_of_pod(const kube::SchedulingPodRecord& pod) {
  return pod.node_name.empty() && !placed_for(pod).empty() ? Names{pod.pinned_to} : node_of_pod(pod);
}

Names group_of_pod(const kube::SchedulingPodRecord& pod) {
  const auto group = group_of(pod.meta);
  return group ? Names{group->str()} : Names{};
}

Names jobs_of_pod(const kube::SchedulingPodRecord& pod) {
  Names out;
  for (const JobId& job : placed_for(pod)) out.push_back(std::to_string(job.number));
  return out;
}

const slinky::CacheOf<kube::SchedulingPodRecord> kAllPods{
    kube::resources::kPod,
    "",
    {{slinky::kIndexNode, node_of_pod}, {kIndexPlace, place_of_pod}, {kIndexGroup, group_of_pod}, {kIndexJob, jobs_of_pod}}};
const slinky::CacheOf<kube::SchedulingNodeRecord> kAllNodes{kube::resources::kNode};

}  // namespace

Caches::Caches(slinky::Wiring& wiring) : pods(wiring.cache(kAllPods)), nodes(wiring.cache(kAllNodes)) {}

}  // namespace bridge
