// Telling which configuration slurmctld has loaded: the file names its own hash in a hidden, inactive partition without nodes,
// which every release shows over REST and plain `sinfo` does not. The name begins with the program that wrote the file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "slurm/holds.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace slurm::conf {

/// Returns the name of that partition: "slurm-operator-HASH". `hash`: lower-case letters and digits.
std::string marker_name(Owner writer, std::string_view hash);
/// The line to append to slurm.conf.
std::string marker_partition(Owner writer, std::string_view hash);
/// True for the name of such a partition; users are not shown it.
bool is_marker(Owner writer, std::string_view partition);
/// The hash of the loaded configuration; empty when no marker of this program is loaded. Ask complete snapshots only.
std::optional<std::string> loaded_hash(Owner writer, const Snapshot& snapshot);

}  // namespace slurm::conf
