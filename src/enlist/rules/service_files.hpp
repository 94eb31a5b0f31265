// The text of the files that the agent writes for systemd: /etc/default/slurmd and slurmd's unit. And what it says of slurmd's
// service.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace enlist {

/// Files of this program begin with this line. A file without it belongs to somebody else.
inline constexpr std::string_view kFileMark = "# Written by slurm-enlist. Changes are overwritten.\n";

/// What an agent reports of a host on which somebody else runs slurmd: its error begins with this.
inline constexpr std::string_view kForeignSlurmd =
    "slurmd runs already, and slurm-enlist has not started it: stop and disable it";
/// What an agent reports of a slurmd that has not come up after some seconds: its error has this.
inline constexpr std::string_view kStillStarting = "slurmd is still starting";

/// Returns /etc/default/slurmd: SLURMD_OPTIONS="..." quoted as systemd reads an EnvironmentFile, and as it splits
/// $SLURMD_OPTIONS into words afterwards (systemd.exec(5), systemd.service(5)).
[[nodiscard]] std::string defaults_file(const std::vector<std::string>& arguments);
/// Reads the arguments back. Error: kInvalid if the file has no SLURMD_OPTIONS or was quoted by somebody else's rules.
[[nodiscard]] core::Result<std::vector<std::string>> arguments_of(std::string_view defaults_file);
/// Returns slurmd's unit: Type=notify, one ExecStart without a wrapper, KillMode=process, Delegate=yes, Restart=on-failure,
/// TimeoutStartSec=infinity (slurmd waits for slurmctld). `slurmd`: the path of the program. `defaults`: that of the file with
/// its arguments.
[[nodiscard]] std::string unit_file(std::string_view slurmd, std::string_view defaults);

}  // namespace enlist
