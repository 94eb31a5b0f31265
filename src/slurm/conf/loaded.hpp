// Finds out which configuration slurmctld has loaded. slurm.conf contains its own hash as the name of a hidden, inactive
// partition without nodes. Every release of Slurm shows this partition over REST, but plain `sinfo` does not. The name of
// the partition begins with the name of the program that wrote the file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "slurm/holds.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace slurm::conf {

/// Returns the name of the partition for a hash: "slurm-operator-HASH". `hash` consists of lower-case letters and digits.
std::string marker_name(Owner writer, std::string_view hash);
/// Returns the line of that partition, to append to slurm.conf.
std::string marker_partition(Owner writer, std::string_view hash);
/// True for the name of a partition that marks a configuration. The program must not show this partition to users.
bool is_marker(Owner writer, std::string_view partition);
/// Returns the hash of the loaded configuration; nullopt if no marker of this program is loaded. Call it with complete
/// snapshots only.
std::optional<std::string> loaded_hash(Owner writer, const Snapshot& snapshot);

}  // namespace slurm::conf
