// `slurm-enlist coordinator init`: reads slurm.conf, prints the changes that joining needs, and makes them with --yes.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "core/random.hpp"
#include "enlist/host/host.hpp"

namespace enlist {

struct InitOptions {
  std::filesystem::path slurm_conf = "/etc/slurm/slurm.conf";
  std::string slurmrestd_user = "slurm-enlist";
  std::size_t max_nodes = 1024;  ///< The smallest MaxNodeCount that init accepts.
  bool yes = false;              ///< Makes the changes. Without it, init only prints them.
};

/// Prints the problems and the changes that are needed, and makes the changes with `yes`. Saves the old slurm.conf beside the
/// new one. Restarts nothing, but prints the command that does. Prints a note that several SlurmctldHosts must share the folder
/// of slurm.conf. Returns the exit code: 0 (done, or nothing to do), or 1 (there are problems, or a change failed). Blocks.
int init_coordinator(const InitOptions& options, Host& host, core::Random& random,
                     const std::function<void(std::string_view)>& out);

}  // namespace enlist
