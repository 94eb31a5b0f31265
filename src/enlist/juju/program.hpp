// The charms as programs: `slurm-enlist charm slurmd` and `slurm-enlist charm slurmctld`, which Juju runs for each hook.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "core/result.hpp"
#include "enlist/host/host.hpp"
#include "enlist/juju/event.hpp"
#include "enlist/juju/hook_tools.hpp"
#include "enlist/juju/status.hpp"

namespace enlist::juju {

/// The access of a charm to the outside. Tests pass their own.
struct CharmParts {
  Host& host;
  HookTools& tools;
  Service& slurmd;  ///< Only the charm slurmd uses it.
  std::function<void(std::chrono::milliseconds)> pause;
  std::function<core::MonoTime()> now;
  std::filesystem::path slurm_conf = "/etc/slurm/slurm.conf";
  std::filesystem::path state = "/var/lib/slurm-enlist";  ///< The folder of the files that the charm writes for later hooks.
};

/// Carry out a hook. Return the new status of the unit; nullopt: the status stays as it is. Error: Juju has to run the hook
/// again.
[[nodiscard]] core::Result<std::optional<Status>> run_compute(const Event& event, const CharmParts& parts);
[[nodiscard]] core::Result<std::optional<Status>> run_controller(const Event& event, const CharmParts& parts);

/// Carries out a hook of a unit that is being removed. The hook `stop` waits until Slurm has no record of the node, or
/// slurmd is dead, and then stops slurmd and cleans up. Error: Slurm has not answered for 10 min.
[[nodiscard]] core::Result<std::optional<Status>> leave_compute(const Event& event, const CharmParts& parts);

/// The results of an action. Keys consist of lower-case letters and hyphens.
using Results = std::map<std::string, std::string>;
/// Carries out an action of a unit of slurmd. `leaves`: the unit is being removed. Error: why the action has failed.
[[nodiscard]] core::Result<Results> act_compute(const Event& event, const CharmParts& parts, bool leaves);

/// Runs the hook or the action that the environment names. `charm`: "slurmd" or "slurmctld". In a unit of slurmctld that is
/// being removed, hooks change nothing. Returns the exit code: 0, 1 (Juju has to run the hook again; the unit's log has the
/// cause) or 2 (wrong usage).
int run_charm(std::string_view charm, const std::map<std::string, std::string>& environment, const CharmParts& parts,
              const std::function<void(std::string_view)>& write_err);
/// Runs the hook or the action on this machine, with the environment of this process.
int run_charm(std::string_view charm);

}  // namespace enlist::juju
