// Relates worker pods and their Slurm nodes, and decides whether Slurm's answers can be trusted.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "kube/object.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace slinky {

/// Parses a boolean annotation as Go's strconv.ParseBool does.
[[nodiscard]] bool is_true(std::string_view text);
/// Reports whether the Controller's stop switch is set. The stop switch forbids all deletions in the cluster.
[[nodiscard]] bool stops_deletions(const kube::ObjectMeta& controller);
/// Reports whether the pod's slurmd has ever started. The API server learns of a start with a short delay.
[[nodiscard]] bool slurmd_started(const kube::PodRecord& pod);
/// Reports whether Slurm has had the worker's node at least once.
[[nodiscard]] bool seen_in_slurm(const kube::PodRecord& pod);
/// Reports whether the slurmd that registered `node` started before this pod was created. That slurmd belongs to an earlier
/// pod. Allows a second of clock skew.
[[nodiscard]] bool began_before(const slurm::Node& node, const kube::PodRecord& pod);
/// Reports whether the slurmd that registered `node` belongs to this pod.
[[nodiscard]] bool has_registered(const kube::PodRecord& pod, const slurm::Node& node);

/// missing_text returns the message of the condition for a worker whose node Slurm lacks. missing_since parses the message.
[[nodiscard]] std::string missing_text(core::WallTime since);
[[nodiscard]] std::optional<core::WallTime> missing_since(const kube::PodRecord& pod);

/// registered_text returns the message of the condition that shows since when Slurm has had the worker's node.
/// registered_since parses the message. The operator sets the condition only if a topology file assigns places to workers.
[[nodiscard]] std::string registered_text(core::WallTime since);
[[nodiscard]] std::optional<core::WallTime> registered_since(const kube::PodRecord& pod);

/// Returns the creation time of the youngest pod; the epoch if there is no pod. Used for a slurmctld without a volume: its
/// state is never older than its pod.
[[nodiscard]] core::WallTime youngest(const std::vector<kube::PodPtr>& pods);

/// Returns why Slurm's answers must not lead to deletions, or "". The reasons: the answers come from another cluster, or Slurm
/// has lost, or cannot reach, too many of the workers that it had. Returns "" also if there is no complete answer. `workers`
/// are all workers of the cluster. `state_since` is the creation time of slurmctld's pod if slurmctld's state ends with that
/// pod: workers that registered before this time are not expected.
[[nodiscard]] std::string doubt_of(const std::vector<kube::PodPtr>& workers, const slurm::Snapshot& snapshot,
                                   std::optional<core::WallTime> state_since);

}  // namespace slinky
