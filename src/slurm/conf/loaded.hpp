// Telling which configuration slurmctld has loaded: the file names its own hash in a hidden, inactive partition without nodes,
// which every release shows over REST and plain `sinfo` does not.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "slurm/snapshot/snapshot.hpp"

namespace slurm::conf {

/// The line to append to slurm.conf. `hash`: lower-case letters and digits.
std::string marker_partition(std::string_view hash);
/// True for the name of such a partition; users are not shown it.
bool is_marker(std::string_view partition);
/// The hash of the loaded configuration; empty when no marker is loaded. Ask complete snapshots only.
std::optional<std::string> loaded_hash(const Snapshot& snapshot);

}  // namespace slurm::conf
