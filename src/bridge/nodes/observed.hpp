// The facts for the plan of a node, copied from the caches at one moment.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
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
  std::string installation;                  ///< The UID of the Kubernetes cluster; "": not known yet.
  std::vector<HostPtr> hosts;                ///< The Kubernetes nodes with this name in Slurm. The first one counts.
  slurm::SnapshotPtr snapshot;               ///< Null: no slurmrestd is known.
  bool fresh = false;                        ///< The snapshot is recent enough to act on.
  std::optional<slurm::NodeMark> mark;       ///< Set if this installation created the Slurm node.
  std::optional<slurm::OwnDrained> drained;  ///< Set if the Slurm node may be deleted.
  /// The UID of another Kubernetes cluster whose bridge uses the Slurm node; "": none.
  std::string other_cluster;
  std::string slurm_pod;                       ///< A pod of Slurm or of the bridge on the Kubernetes node, "ns/name"; "": none.
  std::optional<core::MonoTime> absent_since;  ///< Since when Slurm has lacked the node, as far as this process has seen.
  /// For a node with a slurmd: the jobs of the bridge that hold the node, and the jobs of pods that might still run on the
  /// node. Unset for other nodes.
  std::optional<std::set<std::int64_t>> held{};
  /// Pods of these jobs that have the gate in the cache, but might be placed by now: see was_placed().
  std::set<run::Key> unsure{};
  bool in_use = false;           ///< A job of the bridge holds the node, or a pod that the bridge placed is on it.
  bool holds_longer = false;     ///< A job is in `held` only because its pods might still be on the node.
  bool lost_host = false;        ///< The bridge did not create the Slurm node, and this process saw its Kubernetes node go.
  bool other_resources = false;  ///< The Kubernetes node has other resources than the Slurm node that the bridge created.
  /// Why the Slurm node that the bridge created is recreated: kMadeAgain or kUnanswered. "": it is not recreated, because the
  /// cause is absent or too recent, or because another Slurm node is being recreated for this cause. look_again says when to
  /// check again.
  std::string make_again{};
  std::optional<core::Duration> look_again{};

  [[nodiscard]] const kube::SchedulingNodeRecord* host() const { return hosts.empty() ? nullptr : hosts.front().get(); }
  [[nodiscard]] const slurm::Node* node() const { return snapshot == nullptr ? nullptr : snapshot->node(key.name); }
};

/// The reasons with which the bridge drains a Slurm node before it recreates the node. The state NOT_RESPONDING ends only with
/// an answer of slurmd or a new record, and an external node has no slurmd that could answer.
inline constexpr std::string_view kMadeAgain = "its record is made again with other resources";
inline constexpr std::string_view kUnanswered = "its record is made again because Slurm waits for its answer";

/// Reports whether Slurm starts no jobs on the node because it waits for an answer of the node.
[[nodiscard]] inline bool is_unanswered(const slurm::Node& node) {
  return node.state.has("NOT_RESPONDING");
}

}  // namespace bridge::nodes
