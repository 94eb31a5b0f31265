// What a LoginSet needs done. Lanes: "keys" (its host keys), "ssh" (the ConfigMap, and kubelets that are to refresh it),
// "network" (Service), "hosts" (their names in DNS: see hosts.hpp), "rank" (which pods go first), "pod" (Deployment), "events",
// "status".
//
// A login pod that ends takes with it the sessions on it, and the srun and salloc that run there, with their jobs. So its pod
// template holds nothing that changes without need, its preStop waits for them, and idle pods go first: see sessions.hpp.
#pragma once

#include "core/json.hpp"
#include "operator/loginset/observed.hpp"
#include "plan/plan.hpp"

namespace op::loginset {

plan::Plan plan(const Observed& observed);

// The children, as data to create or apply.
core::Json build_host_keys(const Observed& observed);
core::Json build_ssh_config(const Observed& observed);
core::Json build_service(const Observed& observed);
core::Json build_deployment(const Observed& observed);

}  // namespace op::loginset
