// What must be the same however a history went: faults leave no trace in the end, and start no daemon and make no worker more
// often than a history without them does.
#pragma once

#include <map>
#include <string>

#include "core/json.hpp"
#include "sim/kube/api.hpp"
#include "sim/site/slurm_site.hpp"

namespace sim {

/// The state that must be the same however a history went: objects without what depends on time and chance.
core::Json final_state(const KubeApi& api, const SlurmSite& site);
/// How often what users notice was begun: starts of daemons ("slurmctld demo"), and the making of workers ("pod cpu-0"), of
/// which `made` tells.
core::Json starts(const SlurmSite& site, const std::map<std::string, int>& made);

}  // namespace sim
