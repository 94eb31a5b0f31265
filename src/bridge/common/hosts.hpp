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

/// Reports whether both pods are of one template, as far as nodes are concerned: they fit on the same nodes.
[[nodiscard]] bool are_alike(const Pod& a, const Pod& b);

/// The nodes of some partitions that any of some pods can run on. Many plans share one.
struct Fit {
  PodPtr like;                         ///< One of the pods; null: they are not alike.
  std::string partitions;              ///< Names separated by commas; "": the nodes of all partitions.
  std::vector<std::string> excluded;   ///< The nodes of the partitions that cannot run all of the pods. Sorted.
  std::map<std::string, int> reasons;  ///< Why, with the number of nodes.
  std::size_t fitting = 0;             ///< The number of the others.

  /// Reports whether the fit is that of these pods in these partitions.
  [[nodiscard]] bool is_of(const Pods& pods, std::string_view of_partitions) const;
};
using FitPtr = std::shared_ptr<const Fit>;
/// Looks at all nodes. Of a node it reads what misfit() reads, its partitions, and other_cluster_of(). `installation`: the UID
/// of this Kubernetes cluster.
[[nodiscard]] Fit fit_of(const Pods& pods, const Hosts& hosts, const slurm::Snapshot& snapshot, const std::string& installation,
                         std::string_view partitions);

struct Candidates {
  FitPtr fit;
  std::string why;  ///< Why there are not enough nodes; "" if there are.
  [[nodiscard]] const std::vector<std::string>& excluded() const { return fit->excluded; }
};
/// Looks for a node for each of so many pods, such that any pod could run on any of them.
[[nodiscard]] Candidates candidates_of(FitPtr fit, std::size_t pods);

}  // namespace bridge
