// Checks that the operator drains a worker only for a visible cause: the worker or its cluster is being deleted, the worker or
// its host is cordoned, a newer template replaces it, it is on the wrong host, or there are more workers than wanted. Recent
// causes count as well.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/loop.hpp"
#include "sim/kube/api.hpp"
#include "sim/site/slurm_site.hpp"

namespace sim {

class DrainOracle {
 public:
  using Tell = std::function<void(std::string)>;
  DrainOracle(core::Loop& loop, KubeApi& api, Tell violation);
  DrainOracle(const DrainOracle&) = delete;
  DrainOracle& operator=(const DrainOracle&) = delete;

  /// Judges a drain by the operator of a node that was not drained before.
  void drained(const SlurmSite::Cluster& cluster, const SimNode& node, const std::string& reason);

 private:
  void listen();
  [[nodiscard]] bool lately(const core::MonoTime& at) const;
  [[nodiscard]] bool outdated(const std::string& ns, const core::Json& pod) const;
  [[nodiscard]] bool explained(const SlurmSite::Cluster& cluster, const SimNode& record, const std::string& reason) const;
  [[nodiscard]] bool held(const kube::Key& key, const core::Json& pod) const;
  [[nodiscard]] bool below_partition(const std::string& ns, const core::Json& pod) const;
  /// Reports whether the NodeSet has had ScheduledUpdate for a while, and the node neither is nor recently was in maintenance.
  [[nodiscard]] bool outside_window(const std::string& ns, const core::Json& pod, const SimNode& record) const;
  /// Reports whether the worker is or was bound to a Kubernetes node that must not have it, or that must have another worker.
  [[nodiscard]] bool out_of_place(const core::Json& nodeset, const core::Json& pod, const std::string& node) const;
  [[nodiscard]] bool too_many(const std::string& ns, const std::string& nodeset) const;

  core::Loop& loop_;
  KubeApi& api_;
  Tell violation_;
  std::map<kube::Key, core::MonoTime> cordoned_;  ///< Maps a pod or Kubernetes node to when it was last cordoned.
  /// Maps a Kubernetes node to the last change of its labels or its name in Slurm, and a NodeSet to that of its spec.
  std::map<kube::Key, core::MonoTime> changed_;
  std::map<kube::Key, std::vector<core::MonoTime>> ended_;  ///< Maps a NodeSet to when workers ended or were deleted.
  /// Maps a NodeSet to the numbers of wanted workers, each with the time since which it applies.
  std::map<kube::Key, std::vector<std::pair<core::MonoTime, std::int64_t>>> wished_;
  /// Maps a NodeSet to the values of rollingUpdate.partition, each with the time since which it applies.
  std::map<kube::Key, std::vector<std::pair<core::MonoTime, int>>> partitions_;
  /// Maps a NodeSet to whether it has ScheduledUpdate: each change, with its time.
  std::map<kube::Key, std::vector<std::pair<core::MonoTime, bool>>> scheduled_;
};

}  // namespace sim
