// The facts for the plan of a node, copied from the caches at one moment.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bridge/nodes/hosts.hpp"
#include "bridge/nodes/settings.hpp"
#include "plan/plan.hpp"
#include "run/key.hpp"
#include "slurm/own_node.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace bridge::nodes {

struct Observed {
  plan::Context context;
  run::Key key;  ///< The name of the node in Slurm.
  std::shared_ptr<const Settings> settings;
  std::string installation;                    ///< The UID of the Kubernetes cluster; "": not known yet.
  std::vector<HostPtr> hosts;                  ///< The Kubernetes nodes with this name in Slurm. The first one counts.
  slurm::SnapshotPtr snapshot;                 ///< Null: no slurmrestd is known.
  bool fresh = false;                          ///< The snapshot may still be acted on.
  std::optional<slurm::NodeMark> mark;         ///< Set if this installation created the Slurm node.
  std::optional<slurm::OwnDrained> drained;    ///< Set if the Slurm node may be deleted.
  std::string slurm_pod;                       ///< A pod of Slurm or of the bridge on the Kubernetes node, "ns/name"; "": none.
  std::optional<core::MonoTime> absent_since;  ///< Since when Slurm has lacked the node, as far as this process has seen.
  /// The jobs of the bridge that a node with a slurmd runs pods of, or may: those that hold it, and those of the pods that are
  /// not gone. Unset for other nodes.
  std::optional<std::set<std::int64_t>> held{};
  bool holds_longer = false;  ///< One of them is held only because it has ended a moment ago.
  bool lost_host = false;  ///< This process has seen the Kubernetes node of a Slurm node that is not the bridge's. It is gone.
  /// Whether the Kubernetes node has had other resources than the Slurm node for so long that the record is made again, and no
  /// other record is. Otherwise, when to look again.
  bool make_again = false;
  std::optional<core::Duration> look_again{};

  [[nodiscard]] const kube::SchedulingNodeRecord* host() const { return hosts.empty() ? nullptr : hosts.front().get(); }
  [[nodiscard]] const slurm::Node* node() const { return snapshot == nullptr ? nullptr : snapshot->node(key.name); }
};

/// The reason for which the bridge drains a node whose record it makes again.
inline constexpr std::string_view kMadeAgain = "its record is made again with other resources";

}  // namespace bridge::nodes
