// The controllers of the simulated cluster: garbage collection, namespaces, StatefulSets, Deployments, disruption budgets,
// volume claims, endpoints, taints of nodes that are not ready and what they do to pods. Each reacts to changes after a random
// delay, and writes through the same rules as everybody.
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

/// A pod's tolerations of a taint: none, when it is not tolerated.
std::vector<core::Json> tolerations_of(const core::Json& pod, const core::Json& taint);
/// Pods that a selector with matchLabels takes.
bool selects(const core::Json& selector, const core::Json& labels);

}  // namespace sim
