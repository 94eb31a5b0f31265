// The identities of clients: the names of operators for the API server and in the Lease, and the administrator of Slurm.
#pragma once

#include <string>
#include <string_view>

#include "net/http.hpp"
#include "sim/kube/api.hpp"

namespace sim {

/// The beginning of the operators' User-Agent.
inline constexpr std::string_view kOperatorAgent = "slurm-operator";
/// The user who changes nodes by hand. Nobody else may undo this user's drains.
inline constexpr std::string_view kSlurmAdmin = "admin";
/// The Lease of the operators' leader election.
inline const kube::Key kLeaseKey{"slurm-operator", "slurm-operator"};
/// Returns the identity in the Lease; "" if nobody holds it.
std::string lease_holder(const KubeApi& api);
/// Returns the User-Agent of an operator process, which identifies each of its requests, even after its death.
std::string operator_agent(std::string_view identity);
/// Returns the identity in the User-Agent of a request, as operator_agent writes it; "" if it has none.
std::string identity_of(const net::HttpRequest& request);

}  // namespace sim
