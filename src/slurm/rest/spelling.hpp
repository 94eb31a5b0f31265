// Differences between data_parsers in pings, partitions and queries. For QOS and limits, see slurm/accounting/qos.hpp.
//
// Each release of Slurm ships three or four data_parsers. We use the newest one that both sides know. From v0.0.40 on, all of
// them write states as arrays, and times and limits as {set, infinite, number}.
#pragma once

#include <array>
#include <string_view>

namespace slurm {

struct Spelling {
  std::string_view parser;
  std::string_view ping_up;    ///< The field that shows whether slurmctld answers: a boolean, or the text "UP".
  std::string_view ping_role;  ///< The field that shows whether slurmctld is the primary: a boolean, or the text "primary".
  bool partition_flags;        ///< Partitions have flags[]. Older versions do not show that a partition is hidden.
  bool differences;            ///< The server accepts update_time. Older versions refuse it.
  /// The query that asks for associations with their own limits only.
  std::string_view own_limits = "Exclude%20limits%20from%20parents=true";
  /// The query that asks for accounts with their coordinators.
  std::string_view coordinators = "WithCoordinators=true";
};

/// The data_parsers that we can read, newest first.
inline constexpr std::array<Spelling, 6> kSpellings{{
    {"v0.0.45", "responding", "primary", true, true},
    {"v0.0.44", "responding", "primary", false, true},
    {"v0.0.43", "responding", "primary", false, true},
    {"v0.0.42", "responding", "primary", false, true},
    {"v0.0.41", "pinged", "mode", false, false, "without_parent_limits=true"},
    {"v0.0.40", "pinged", "mode", false, false, "without_parent_limits=true", "with_coords=true"},
}};

}  // namespace slurm
