// The caches that several controllers of the bridge read.
//
// Folder src/bridge/common: what the controllers of the bridge share. Uses slinky.
#pragma once

#include <string_view>

#include "kube/cache/cache.hpp"
#include "slinky/wiring.hpp"

namespace bridge {

/// Indexes of pods: by group, by the number of the job that the pod was placed for, and by Kubernetes node. A placed pod that
/// is not bound yet is indexed by the node to which it is pinned, because Kubernetes might bind the pod at any moment.
inline constexpr std::string_view kIndexGroup = "group";
inline constexpr std::string_view kIndexJob = "job";
inline constexpr std::string_view kIndexPlace = "place";

/// All pods and all Kubernetes nodes.
struct Caches {
  explicit Caches(slinky::Wiring& wiring);
  kube::Cache<kube::SchedulingPodRecord>& pods;
  kube::Cache<kube::SchedulingNodeRecord>& nodes;
};

}  // namespace bridge
