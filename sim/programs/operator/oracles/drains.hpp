// No worker is drained by the operator without a cause that anybody can see: it goes or is gone, it is cordoned, its host is,
// or fewer workers are wished for than there are.
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

  /// The operator drains a node that nobody had drained.
  void drained(const SlurmSite::Cluster& cluster, const SimNode& node, const std::string& reason);

 private:
  void listen();
  [[nodiscard]] bool lately(const core::MonoTime& at) const;
  [[nodiscard]] bool outdated(const std::string& ns, const core::Json& pod) const;
  [[nodiscard]] bool explained(const SlurmSite::Cluster& cluster, const SimNode& record, const std::string& reason) const;
  [[nodiscard]] bool held(const kube::Key& key, const core::Json& pod) const;
  [[nodiscard]] bool below_partition(const std::string& ns, const core::Json& pod) const;
  /// Its NodeSet has ScheduledUpdate, and had it all the time lately, and the node is in no maintenance, nor was.
  [[nodiscard]] bool outside_window(const std::string& ns, const core::Json& pod, const SimNode& record) const;
  /// It is bound to a Kubernetes node that is not to have it, or is to have another, or was lately.
  [[nodiscard]] bool out_of_place(const core::Json& nodeset, const core::Json& pod, const std::string& node) const;
  [[nodiscard]] bool too_many(const std::string& ns, const std::string& nodeset) const;

  core::Loop& loop_;
  KubeApi& api_;
  Tell violation_;
  std::map<kube::Key, core::MonoTime> cordoned_;  ///< Pods and Kubernetes nodes: when they last were, or ceased to be.
  /// Kubernetes nodes and NodeSets: when what makes them match last changed.
  std::map<kube::Key, core::MonoTime> changed_;
  std::map<kube::Key, std::vector<core::MonoTime>> ended_;  ///< By NodeSet: when workers ended, or were deleted.
  /// By NodeSet: the workers that were wished for, and until when.
  std::map<kube::Key, std::vector<std::pair<core::MonoTime, std::int64_t>>> wished_;
  std::map<kube::Key, std::vector<std::pair<core::MonoTime, int>>> partitions_;  ///< The same of their partitions,
  std::map<kube::Key, std::vector<std::pair<core::MonoTime, bool>>> scheduled_;  ///< and of ScheduledUpdate.
};

}  // namespace sim
