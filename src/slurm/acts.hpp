// What can be done to Slurm, as steps of plans. Carried out by slurm::Target, which reads the node live just before it writes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/evidence.hpp"
#include "plan/plan.hpp"
#include "slurm/model.hpp"

namespace slurm {

/// Every reason that we write starts with this; a drain or down with another reason is somebody else's.
inline constexpr std::string_view kReasonPrefix = "slurm-operator: ";
[[nodiscard]] inline bool ours(std::string_view reason) {
  return reason.starts_with(kReasonPrefix);
}

/// Neither ours nor slurmctld's own for a silent slurmd: somebody else gave it.
[[nodiscard]] inline bool given_by_others(std::string_view reason) {
  return !reason.empty() && reason != "Not responding" && !ours(reason);
}

/// Drains nodes with our reason (given without prefix). A node that is draining already keeps its reason and owner. Batched
/// where the server can.
struct DrainNodes final : plan::Act {
  ClusterKey cluster;
  std::vector<std::string> nodes;
  std::string reason;
  [[nodiscard]] core::Json describe() const override;
};

/// Takes our own drain or down off a node: UNDRAIN when it is drained, RESUME when it is down. Refused (kConflict) when the
/// live node's reason is not ours, or when there is nothing to undo.
struct ResumeNode final : plan::Act {
  ClusterKey cluster;
  std::string node;
  [[nodiscard]] core::Json describe() const override;
};

/// Sets comment or features; never state.
struct UpdateNode final : plan::Act {
  ClusterKey cluster;
  std::string node;
  NodeUpdate update;  ///< state and reason must be unset.
  [[nodiscard]] core::Json describe() const override;
};

/// Deletes the record of a worker that goes for good: the fence, since slurmctld refuses while jobs hold it. Suspended jobs are
/// looked up live first. An unknown node counts as done. `expect_down`: also refused unless the live node is DOWN or drained.
struct DeleteNode final : plan::Act {
  DeleteNode(ClusterKey in_cluster, std::string name, std::string because)
      : cluster(std::move(in_cluster)), node(std::move(name)), why(std::move(because)) {}
  ClusterKey cluster;
  std::string node;
  std::string why;
  bool expect_down = false;
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] bool destructive() const override { return true; }
};

/// `scontrol reconfigure`. A refused configuration is a failed outcome (kInvalid) with slurmctld's error.
struct Reconfigure final : plan::Act {
  ClusterKey cluster;
  [[nodiscard]] core::Json describe() const override;
};

plan::ActPtr drain_nodes(ClusterKey cluster, std::vector<std::string> nodes, std::string reason);
plan::ActPtr resume_node(ClusterKey cluster, std::string node);
plan::ActPtr update_node(ClusterKey cluster, std::string node, NodeUpdate update);
plan::ActPtr delete_node(ClusterKey cluster, std::string node, std::string why, bool expect_down = false);
plan::ActPtr reconfigure(ClusterKey cluster);

}  // namespace slurm
