// Finds out which configuration slurmctld has loaded. The file contains its own hash as the name of a hidden, inactive
// partition without nodes. Every release shows it over REST, and plain `sinfo` does not.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "slurm/snapshot/snapshot.hpp"

namespace slurm::conf {

/// Returns the line to append to slurm.conf. `hash` consists of lower-case letters and digits.
std::string marker_partition(std::string_view hash);
/// True for the name of such a partition. Users must not see it.
bool is_marker(std::string_view partition);
/// The hash of the loaded configuration; nullopt if no marker is loaded. Call it with complete snapshots only.
std::optional<std::string> loaded_hash(const Snapshot& snapshot);

}  // namespace slurm::conf
