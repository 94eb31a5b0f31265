// The text of the files that the agent writes for systemd: /etc/default/slurmd and slurmd's unit. Also the texts with which the
// agent reports problems of slurmd's service.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace enlist {

/// Files that slurm-enlist writes begin with this line. A file without this line belongs to somebody else.
inline constexpr std::string_view kFileMark = "# Written by slurm-enlist. Changes are overwritten.\n";

/// Report::error begins with this text if somebody else runs slurmd on the host.
inline constexpr std::string_view kForeignSlurmd =
    "slurmd runs already, and slurm-enlist has not started it: stop and disable it";
/// Report::error contains this text if slurmd has not come up after some seconds.
inline constexpr std::string_view kStillStarting = "slurmd is still starting";

/// Returns the text of /etc/default/slurmd: SLURMD_OPTIONS="...". It is quoted twice, because systemd unquotes it when it reads
/// the EnvironmentFile, and again when it splits $SLURMD_OPTIONS into words (systemd.exec(5), systemd.service(5)).
[[nodiscard]] std::string defaults_file(const std::vector<std::string>& arguments);
/// Returns the arguments in a file of defaults_file(). Error: kInvalid if the file has no SLURMD_OPTIONS or other quotes.
[[nodiscard]] core::Result<std::vector<std::string>> arguments_of(std::string_view defaults_file);
/// Returns the text of slurmd's unit: Type=notify, one ExecStart without a wrapper, KillMode=process, Delegate=yes,
/// Restart=on-failure, TimeoutStartSec=infinity (slurmd waits for slurmctld). `slurmd`: the path of the program. `defaults`:
/// the path of the file with its arguments.
[[nodiscard]] std::string unit_file(std::string_view slurmd, std::string_view defaults);

}  // namespace enlist
