// Who asks: how operators name themselves to the API server and in the Lease, and the administrator of Slurm.
#pragma once

#include <string>
#include <string_view>

#include "net/http.hpp"
#include "sim/kube/api.hpp"

namespace sim {

/// How operators name themselves to the API server.
inline constexpr std::string_view kOperatorAgent = "slurm-operator";
/// Who changes nodes by hand: drains of this user are nobody else's business.
inline constexpr std::string_view kSlurmAdmin = "admin";
/// Of the Lease by which operators elect their leader.
inline const kube::Key kLeaseKey{"slurm-operator", "slurm-operator"};
/// Identity in the Lease; "" when nobody holds it.
std::string lease_holder(const KubeApi& api);
/// The User-Agent of a process of the operator: with it every request tells whose it is, also when its sender has died.
std::string operator_agent(std::string_view identity);
/// The identity that its sender gave with it; "": none.
std::string identity_of(const net::HttpRequest& request);

}  // namespace sim
