// What is known of worker pods, by themselves and beside what Slurm says: whether it can be acted on.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "kube/object.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace slinky {

/// How users say yes in annotations: as Go's strconv.ParseBool takes it.
[[nodiscard]] bool is_true(std::string_view text);
/// The stop switch of a Controller: nothing of its cluster is deleted.
[[nodiscard]] bool stops_deletions(const kube::ObjectMeta& controller);
/// Says the API server, a moment later than it is so.
[[nodiscard]] bool slurmd_started(const kube::PodRecord& pod);
/// Slurm had its node at least once.
[[nodiscard]] bool seen_in_slurm(const kube::PodRecord& pod);
/// The slurmd that Slurm knows there was started before this pod was made: it is an earlier one's. A second of skew is allowed.
[[nodiscard]] bool began_before(const slurm::Node& node, const kube::PodRecord& pod);
/// The slurmd that Slurm knows there is the pod's own.
[[nodiscard]] bool has_registered(const kube::PodRecord& pod, const slurm::Node& node);

/// The message of the condition that a worker has while Slurm does not know its node (any more), and its way back.
[[nodiscard]] std::string missing_text(core::WallTime since);
[[nodiscard]] std::optional<core::WallTime> missing_since(const kube::PodRecord& pod);

/// The message of the condition that a worker has from when Slurm first had its node, where places depend on it; and its way
/// back.
[[nodiscard]] std::string registered_text(core::WallTime since);
[[nodiscard]] std::optional<core::WallTime> registered_since(const kube::PodRecord& pod);

/// When the last of these pods was made. The state of a slurmctld without a volume is no older.
[[nodiscard]] core::WallTime youngest(const std::vector<kube::PodPtr>& pods);

/// Why nothing may be destroyed by Slurm's word: it is another cluster's. Or: of the workers that it knew it does not know
/// many, or most, or does not reach most. That says more about Slurm than about them. "": its word is sound, or there is none.
/// `workers`: all of the cluster; `state_since`: where slurmctld's state ends with its pod, that pod's creation. What was
/// registered before is not expected.
[[nodiscard]] std::string doubt_of(const std::vector<kube::PodPtr>& workers, const slurm::Snapshot& snapshot,
                                   std::optional<core::WallTime> state_since);

}  // namespace slinky
