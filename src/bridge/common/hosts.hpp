// Finds the Slurm nodes that a pod can run on.
#pragma once

#include <cstddef>
#include <map>
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

/// The Kubernetes nodes by their names in Slurm. If two have the same name in Slurm, the node that also has this name in
/// Kubernetes takes precedence.
using Hosts = std::map<std::string, KubeNodePtr, std::less<>>;
[[nodiscard]] Hosts hosts_of(const std::vector<KubeNodePtr>& nodes);

/// Returns why Kubernetes would not run the pod on the node, such as "short of cpu"; "" if it would. Checks for deletion,
/// cordons, the node selector, the required node affinity, taints, and whether the node could hold the pod if nothing else ran
/// there. Ignores the taint of managed nodes.
[[nodiscard]] std::string misfit(const kube::SchedulingPodRecord& pod, const kube::SchedulingNodeRecord& node);

/// Returns the UID of another Kubernetes cluster whose bridge uses the Slurm node; "" if none does. An external node has the
/// mark of the bridge that created it. Other nodes list the jobs of the bridge in `extra` (held.hpp). `installation`: the UID
/// of this cluster.
[[nodiscard]] std::string other_cluster_of(const slurm::Node& node, const std::string& installation);

/// Reports whether both pods fit on the same nodes, because all fields that matter for the fit are equal in both pods.
[[nodiscard]] bool are_alike(const Pod& a, const Pod& b);

/// Which nodes of some partitions can run all pods of a list, and why other nodes cannot. Pods of one template share a Fit.
struct Fit {
  PodPtr like;                         ///< One of the pods if all of them are alike; null if not.
  std::string partitions;              ///< Names separated by commas; "": the nodes of all partitions.
  std::vector<std::string> excluded;   ///< The nodes of the partitions that cannot run all of the pods. Sorted.
  std::map<std::string, int> reasons;  ///< Why nodes are excluded, with the number of nodes for each reason.
  std::size_t fitting = 0;             ///< The number of nodes that can run all of the pods.

  /// Reports whether this fit holds for these pods in these partitions.
  [[nodiscard]] bool is_of(const Pods& pods, std::string_view of_partitions) const;
};
using FitPtr = std::shared_ptr<const Fit>;
/// Returns the fit of the pods. The fit depends only on misfit(), on other_cluster_of() and on the partitions of each node.
/// `installation`: the UID of this Kubernetes cluster.
[[nodiscard]] Fit fit_of(const Pods& pods, const Hosts& hosts, const slurm::Snapshot& snapshot, const std::string& installation,
                         std::string_view partitions);

struct Candidates {
  FitPtr fit;
  std::string why;  ///< Why there are not enough nodes; "" if there are.
  [[nodiscard]] const std::vector<std::string>& excluded() const { return fit->excluded; }
};
/// Returns the candidates for this number of pods, each of which needs a node of its own.
[[nodiscard]] Candidates candidates_of(FitPtr fit, std::size_t pods);

}  // namespace bridge
