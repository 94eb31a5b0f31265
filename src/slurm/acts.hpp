// What can be done to Slurm, as steps of plans. Carried out by slurm::Target, which reads the node live just before it writes.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/plan.hpp"
#include "slurm/evidence.hpp"
#include "slurm/holds.hpp"
#include "slurm/model.hpp"

namespace slurm {

/// Drains nodes in the name of their owner, whose reason is given without prefix. Of a node that is draining already, a reason
/// of the owner stays as it is, and so does somebody else's; beside that of another program of ours the owner's is added.
/// Batched where the server can.
struct DrainNodes final : plan::Act {
  ClusterKey cluster;
  Owner owner = Owner::kOperator;
  std::vector<std::string> nodes;
  std::string reason;
  [[nodiscard]] core::Json describe() const override;
};

/// Takes the owner's drain or down off a node, or a down of slurmctld's own: UNDRAIN when it is drained, RESUME when it is
/// down. While other programs of ours hold the node, it stays as it is, and only the owner's word goes. Refused (kConflict)
/// when the live node's reason is another, or when there is nothing to undo. Leaves a reason that is nobody's: before 26.05
/// none goes by itself, and Slurm's next drain would keep it.
struct ResumeNode final : plan::Act {
  ClusterKey cluster;
  Owner owner = Owner::kOperator;
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

/// Deletes the record of a node that goes for good. slurmctld refuses while jobs hold it; suspended jobs are looked up live
/// first. An unknown node counts as done. Refused (kConflict) unless the live node is as expected, and when somebody else has
/// given it a reason since; and (kExpired) when its evidence is too old. That of a worker needs evidence, as it is the fence
/// before the deletion of its pod.
struct DeleteNode final : plan::Act {
  DeleteNode(ClusterKey in_cluster, std::string name, std::string seen, std::string because,
             std::optional<NodeEvidence::Live> live)
      : cluster(std::move(in_cluster)),
        node(std::move(name)),
        reason(std::move(seen)),
        why(std::move(because)),
        expected(live) {}
  ClusterKey cluster;
  std::string node;
  std::string reason;  ///< That Slurm had of it when this was decided.
  std::string why;
  std::optional<NodeEvidence::Live> expected;
  std::optional<NodeEvidence> evidence;
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] bool destructive() const override { return true; }
};

/// Sets a node DOWN whose slurmd has ended, so that its jobs are requeued at once. Refused when the evidence is too old
/// (kExpired), and unless the live node is drained by the operator, and still that of the very slurmd (kConflict).
struct EndNode final : plan::Act {
  explicit EndNode(SlurmdEnded why) : evidence(std::move(why)) {}
  SlurmdEnded evidence;
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] bool destructive() const override { return true; }
};

/// The fence that keeps the record: fails (kConflict, kBusy) unless Slurm, asked live, has the node, keeps it from work, and no
/// job holds it; and when the evidence is too old (kExpired). Changes nothing.
struct ConfirmIdle final : plan::Act {
  explicit ConfirmIdle(Drained why) : evidence(std::move(why)) {}
  Drained evidence;
  [[nodiscard]] core::Json describe() const override;
};

/// Fails (kBusy) unless Slurm, asked live, has no job that runs or waits. Changes nothing.
struct ConfirmNoJobs final : plan::Act {
  ClusterKey cluster;
  [[nodiscard]] core::Json describe() const override;
};

/// `scontrol reconfigure`. A refused configuration is a failed outcome (kInvalid) with slurmctld's error.
struct Reconfigure final : plan::Act {
  ClusterKey cluster;
  [[nodiscard]] core::Json describe() const override;
};

plan::ActPtr drain_nodes(ClusterKey cluster, Owner owner, std::vector<std::string> nodes, std::string reason);
plan::ActPtr resume_node(ClusterKey cluster, Owner owner, std::string node);
plan::ActPtr update_node(ClusterKey cluster, std::string node, NodeUpdate update);
/// Of a node that has no worker behind it, as it was `seen`.
plan::ActPtr delete_node(ClusterKey cluster, const Node& seen, std::string why,
                         std::optional<NodeEvidence::Live> expected = std::nullopt);
/// Of a worker's node.
plan::ActPtr delete_node(NodeEvidence evidence, std::string why);
plan::ActPtr end_node(SlurmdEnded evidence);
plan::ActPtr confirm_idle(Drained evidence);
plan::ActPtr confirm_no_jobs(ClusterKey cluster);
plan::ActPtr reconfigure(ClusterKey cluster);

}  // namespace slurm
