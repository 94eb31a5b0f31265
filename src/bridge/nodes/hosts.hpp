// What a Kubernetes node asks for in Slurm.
//
// Folder src/bridge/nodes: the nodes controller of slurm-bridge. Uses bridge/common, and no other controller.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "kube/object.hpp"
#include "slurm/own_node.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace bridge::nodes {

using HostPtr = std::shared_ptr<const kube::SchedulingNodeRecord>;

/// Returns the name of the Kubernetes node in Slurm.
[[nodiscard]] std::string slurm_name_of(const kube::ObjectMeta& node);

/// The Kubernetes nodes by their names in Slurm. If several have one name, the one whose own name it is stands first, then the
/// others by name.
using Hosts = std::map<std::string, std::vector<HostPtr>, std::less<>>;
[[nodiscard]] Hosts hosts_of(const std::vector<HostPtr>& nodes);

/// Reports whether the Kubernetes node shall be an external node of Slurm.
[[nodiscard]] bool is_external(const kube::ObjectMeta& node);

/// Returns the partitions that the Kubernetes node asks for, each once.
[[nodiscard]] std::vector<std::string> partitions_of(const kube::ObjectMeta& node);

/// Returns the Slurm node that the Kubernetes node asks for, with its partitions as features. Error: kInvalid with what is
/// wrong, also if Slurm does not have one of the partitions.
[[nodiscard]] core::Result<slurm::NodeWish> wish_of(const kube::SchedulingNodeRecord& node, const slurm::Snapshot& snapshot);

/// Returns the features that follow from the wish: those of its partitions, and of no other partition of Slurm. Others stay.
[[nodiscard]] slurm::OwnFeatures features_of(const slurm::NodeWish& wish, const slurm::Snapshot& snapshot);

}  // namespace bridge::nodes
