#include "sim/programs/operator/oracles/agents.hpp"

#include <fmt/format.h>

#include "core/json.hpp"

namespace sim {

std::string lease_holder(const KubeApi& api) {
  const core::Json* lease = api.peek(kube::resources::kLease, kLeaseKey);
  return lease == nullptr ? "" : core::get_string(*lease, {"spec", "holderIdentity"});
}

std::string identity_of(const net::HttpRequest& request) {
  const auto agent = request.headers.find("user-agent");
  const std::string prefix = operator_agent("");
  return agent != request.headers.end() && agent->second.starts_with(prefix) ? agent->second.substr(prefix.size()) : "";
}

std::string operator_agent(std::string_view identity) {
  return fmt::format("{}/{}", kOperatorAgent, identity);
}

}  // namespace sim
