// Plans what a LoginSet needs. Lanes: "keys" (host keys), "ssh" (the ConfigMap, and annotations that make kubelets refresh it),
// "network" (Service), "hosts" (the names of login pods in DNS: see hosts.hpp), "rank" (which pods are deleted first), "pod"
// (Deployment), "events", "status".
//
// When a login pod ends, its sessions end. The srun and salloc processes on the pod end too, and with them their jobs. So the
// pod template contains nothing that changes without need, the preStop hook waits for the sessions, and idle pods are deleted
// first: see sessions.hpp.
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
