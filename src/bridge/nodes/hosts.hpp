// Reads the name, the resources and the partitions that a Kubernetes node asks for in Slurm.
//
// Folder src/bridge/nodes: the nodes controller of slurm-bridge. Uses bridge/common, and no other controller.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "kube/object.hpp"
#include "slinky/managed_nodes.hpp"
#include "slurm/own_node.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace bridge::nodes {

using HostPtr = std::shared_ptr<const kube::SchedulingNodeRecord>;

/// Returns the name of the Kubernetes node in Slurm.
[[nodiscard]] std::string slurm_name_of(const kube::ObjectMeta& node);

/// The Kubernetes nodes by their names in Slurm. If several have the same name in Slurm, the node that also has this name in
/// Kubernetes is first. The others follow, sorted by name.
using Hosts = std::map<std::string, std::vector<HostPtr>, std::less<>>;
[[nodiscard]] Hosts hosts_of(const std::vector<HostPtr>& nodes);

using slinky::is_external;

/// Returns the partitions that the Kubernetes node asks for, each once.
[[nodiscard]] std::vector<std::string> partitions_of(const kube::ObjectMeta& node);

/// Returns the Slurm node that the Kubernetes node asks for, with its partitions as features. Error: kInvalid, with what is
/// wrong, for example a partition that Slurm does not have.
[[nodiscard]] core::Result<slurm::NodeWish> wish_of(const kube::SchedulingNodeRecord& node, const slurm::Snapshot& snapshot);
/// Returns the extended resources of the node that are GPUs in Slurm. If there are several, none of these GPUs is registered,
/// because a job asks Slurm for GPUs of any kind.
[[nodiscard]] std::vector<std::string> gpu_resources_of(const kube::SchedulingNodeRecord& node);

/// Returns the features that the Slurm node should have: the names of the partitions in `wish` are added, the names of all
/// other partitions of Slurm are obsolete. Features that are not names of partitions do not change.
[[nodiscard]] slurm::OwnFeatures features_of(const slurm::NodeWish& wish, const slurm::Snapshot& snapshot);

}  // namespace bridge::nodes
