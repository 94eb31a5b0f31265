// The controllers of the simulated cluster: garbage collection, namespaces, StatefulSets, Deployments, disruption budgets,
// volume claims, endpoints, and the taints of nodes that are not ready, including the evictions by taints. Each controller
// reacts to changes after a random delay, and its writes follow the same rules as those of all clients.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/loop.hpp"
#include "sim/base/random.hpp"
#include "sim/kube/api.hpp"

namespace sim {

struct ControllerOptions {
  core::Duration least_delay{5};
  core::Duration most_delay{300};
  bool workloads = true;  ///< StatefulSets, Deployments, ReplicaSets.
  bool garbage = true;
  bool endpoints = true;
};

class KubeControllers {
 public:
  KubeControllers(KubeApi& api, SeededRandom random, ControllerOptions options = {});
  ~KubeControllers();
  KubeControllers(const KubeControllers&) = delete;
  KubeControllers& operator=(const KubeControllers&) = delete;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// Returns a pod's tolerations that match a taint; empty if the pod does not tolerate it.
std::vector<core::Json> tolerations_of(const core::Json& pod, const core::Json& taint);
/// Reports whether a label selector (matchLabels and matchExpressions) selects the labels.
bool selects(const core::Json& selector, const core::Json& labels);

}  // namespace sim
