// The process of `slurm-enlist coordinator run`.
#pragma once

#include <memory>
#include <string>

#include "run/shell/shell.hpp"

namespace enlist {

/// Returns the process, which is not started yet. Make it once (run::Shell).
std::unique_ptr<run::Shell> make_coordinator(const std::string& version);

}  // namespace enlist
