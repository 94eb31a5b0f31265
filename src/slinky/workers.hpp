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
/// Reports whether the Controller's stop switch is set, which forbids all deletions in its cluster.
[[nodiscard]] bool stops_deletions(const kube::ObjectMeta& controller);
/// Reports whether the pod's slurmd has ever started. The API server learns of it with a short delay.
[[nodiscard]] bool slurmd_started(const kube::PodRecord& pod);
/// Reports whether Slurm has had the worker's node at least once.
[[nodiscard]] bool seen_in_slurm(const kube::PodRecord& pod);
/// Reports whether the slurmd behind `node` started before this pod was created. Such a slurmd belongs to an earlier pod.
/// Allows a second of clock skew.
[[nodiscard]] bool began_before(const slurm::Node& node, const kube::PodRecord& pod);
/// Reports whether the slurmd that Slurm knows behind `node` belongs to this pod.
[[nodiscard]] bool has_registered(const kube::PodRecord& pod, const slurm::Node& node);

/// missing_text returns the message of the condition that Slurm lacks a worker's node. missing_since parses it (nullopt: none).
[[nodiscard]] std::string missing_text(core::WallTime since);
[[nodiscard]] std::optional<core::WallTime> missing_since(const kube::PodRecord& pod);

/// registered_text returns the message of the condition that says since when Slurm has had the node of a worker.
/// registered_since parses it. The operator sets the condition only if a topology file gives workers their places.
[[nodiscard]] std::string registered_text(core::WallTime since);
[[nodiscard]] std::optional<core::WallTime> registered_since(const kube::PodRecord& pod);

/// Returns the creation time of the youngest pod; the epoch if there is none. A slurmctld without a volume has no state from
/// before its pod.
[[nodiscard]] core::WallTime youngest(const std::vector<kube::PodPtr>& pods);

/// Returns why Slurm's answers must not lead to deletions, or "". They must not if they come from another cluster, or if Slurm
/// has lost, or cannot reach, too many of the workers it knew. Also returns "" if there is no complete answer. `workers` are
/// all workers of the cluster. `state_since` is the creation time of slurmctld's pod if its state ends with the pod: workers
/// that registered before it are not expected.
[[nodiscard]] std::string doubt_of(const std::vector<kube::PodPtr>& workers, const slurm::Snapshot& snapshot,
                                   std::optional<core::WallTime> state_since);

}  // namespace slinky
