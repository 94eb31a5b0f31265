// `slurm-enlist agent` as a process.
#pragma once

#include <memory>
#include <string>

#include "enlist/agent/machine.hpp"
#include "run/shell/shell.hpp"

namespace enlist {

/// The values of the flags, with their defaults. `join` writes the values that differ from the defaults into the agent's
/// service.
struct AgentOptions {
  std::string version = "dev";
  std::string state = "/var/lib/slurm-enlist";                 ///< --state: the folder of host.crt, host.key and agent.json.
  std::string status_file = "/run/slurm-enlist/agent.status";  ///< --status-file
  std::string slurm_folder = "/etc/slurm";                     ///< --slurm-folder
  std::string slurmd = "/usr/sbin/slurmd";                     ///< --slurmd
  std::string check{};                                         ///< --check
  std::string gpu_detector{};                                  ///< --gpu-detector
  /// --supervisor: "systemd", "child" (slurmd is a child of the agent), or "auto": systemd if it runs on this host, or else
  /// child.
  std::string supervisor = "auto";
  std::string slurmd_unit = "/etc/systemd/system/slurmd.service";  ///< --slurmd-unit: the file name is the service's name.
  std::string slurmd_defaults = "/etc/default/slurmd";             ///< --slurmd-defaults
  std::string slurmd_log = "/var/log/slurm-enlist/slurmd.log";     ///< --slurmd-log: used if slurmd is a child.
  std::string agent_unit = "/etc/systemd/system/slurm-enlist-agent.service";  ///< --agent-unit: the agent's own unit.
};

[[nodiscard]] MachineOptions machine_options(const AgentOptions& options);
/// Returns the service that runs slurmd, by --supervisor. Error: kInvalid if its value is unknown. `host` must outlive the
/// service.
[[nodiscard]] core::Result<std::shared_ptr<Service>> slurmd_service(Host& host, const AgentOptions& options);
/// Reports whether systemd runs this host (sd_booted(3)).
[[nodiscard]] bool systemd_runs();

/// Returns the agent. Its flags are those of AgentOptions and of run::Shell. By default, it does not serve health and metrics.
///
///   auto agent = enlist::make_agent({.version = SLURM_ENLIST_VERSION});
///   if (const auto code = agent->start(argc, argv)) return *code;   // argv[0]: "slurm-enlist agent"
///   return agent->run();
[[nodiscard]] std::unique_ptr<run::Shell> make_agent(AgentOptions options);

}  // namespace enlist
