// Compares the final states of histories. A history with faults must end like a history without them, and must start daemons
// and create workers no more often.
#pragma once

#include <map>
#include <string>

#include "core/json.hpp"
#include "sim/kube/api.hpp"
#include "sim/site/slurm_site.hpp"

namespace sim {

/// Returns the state that must be equal for all histories: objects without the parts that depend on time and chance.
core::Json final_state(const KubeApi& api, const SlurmSite& site);
/// Returns how often things that users notice were started: daemons ("slurmctld demo"), and workers ("pod cpu-0"), whose
/// numbers are in `made`.
core::Json starts(const SlurmSite& site, const std::map<std::string, int>& made);

}  // namespace sim
