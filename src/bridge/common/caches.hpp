// The caches that several controllers of the bridge read.
//
// Folder src/bridge/common: what the controllers of the bridge share. Uses slinky.
#pragma once

#include <string_view>

#include "kube/cache/cache.hpp"
#include "slinky/wiring.hpp"

namespace bridge {

/// Index of pods by the group that they belong to; by the number of the job that they were placed for; and by the Kubernetes
/// node where they are, or where Kubernetes may bind them at any moment because they were placed.
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
