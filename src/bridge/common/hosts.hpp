// Finds the Slurm nodes that a pod can run on.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kube/object.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace bridge {

using Pod = kube::SchedulingPodRecord;
using PodPtr = std::shared_ptr<const Pod>;
using Pods = std::vector<PodPtr>;
using KubeNodePtr = std::shared_ptr<const kube::SchedulingNodeRecord>;

/// The Kubernetes nodes by their names in Slurm. If two have the same one, the node with that name in Kubernetes counts.
using Hosts = std::map<std::string, KubeNodePtr, std::less<>>;
[[nodiscard]] Hosts hosts_of(const std::vector<KubeNodePtr>& nodes);

/// Returns why Kubernetes would not run the pod on the node: "short of cpu" for example; or "". Looks at the node selector, the
/// required node affinity, the taints, and whether the node could hold the pod if nothing else ran there. The taint of managed
/// nodes does not count.
[[nodiscard]] std::string misfit(const kube::SchedulingPodRecord& pod, const kube::SchedulingNodeRecord& node);

/// Returns the UID of another Kubernetes cluster whose bridge uses the Slurm node; "" if none does. A bridge leaves its mark on
/// external nodes, and on others the list of the jobs whose pods they may run. `installation`: the UID of this cluster.
[[nodiscard]] std::string other_cluster_of(const slurm::Node& node, const std::string& installation);

struct Candidates {
  std::vector<std::string> excluded;  ///< The nodes of the partitions that cannot run all of the pods. Sorted.
  std::string why;                    ///< Why there are not enough others; "" if there are.
};
/// Looks for a node for each pod, such that any pod could run on any of them. `installation`: the UID of this Kubernetes
/// cluster. `partitions`: names separated by commas; "" means the nodes of all partitions.
[[nodiscard]] Candidates candidates_for(const Pods& pods, const Hosts& hosts, const slurm::Snapshot& snapshot,
                                        const std::string& installation, std::string_view partitions);

}  // namespace bridge
