// `slurm-enlist coordinator init`: looks at slurm.conf, says what joining needs of it, and sets it if asked to.
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
  std::size_t max_nodes = 1024;  ///< MaxNodeCount is at least this.
  bool yes = false;              ///< Writes. Otherwise only says what would be written.
};

/// Prints what is wrong and what is to be changed, and changes it with `yes`. The old slurm.conf is kept beside the new one.
/// Restarts nothing: says which command does. Notes that several SlurmctldHosts must share the folder of slurm.conf. Returns
/// the exit code: 0 (done, or nothing to do), or 1 (something is wrong, or a change failed). Blocks.
int init_coordinator(const InitOptions& options, Host& host, core::Random& random,
                     const std::function<void(std::string_view)>& out);

}  // namespace enlist
