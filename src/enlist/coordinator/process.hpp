// The process of `slurm-enlist coordinator run`.
#pragma once

#include <memory>
#include <string>

#include "enlist/host/host.hpp"
#include "run/shell/shell.hpp"

namespace enlist {

/// Returns the process, which is not started yet. Create only one (run::Shell). `host` is used on other threads, and must
/// outlive the returned object.
std::unique_ptr<run::Shell> make_coordinator(const std::string& version, Host& host);

}  // namespace enlist
