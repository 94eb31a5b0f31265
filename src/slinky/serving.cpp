#include "slinky/serving.hpp"

#include <algorithm>
#include <tuple>

namespace slinky {

std::optional<Serving> plan_serving(const ServingObserved& observed) {
  if (!observed.meta || !observed.controller || observed.servers.empty()) return {};
  const api::ControllerSpec& spec = observed.controller->spec;
  // If the Controller is deleted without a drain, do not connect: the operator needs nothing from Slurm any more, and Slurm
  // might be deleted before the Controller.
  if (observed.meta->terminating() && !spec.drains_on_deletion()) return {};
  const auto rank = [&](const Server& server) {
    const bool served = server.meta.name == observed.before;
    return std::tuple(!server.ready, !server.ready && !served, server.meta.created, server.meta.name);
  };
  const Server& best = *std::ranges::min_element(observed.servers, {}, rank);
  if (!best.restapi) return {};
  const Endpoint endpoint = restapi_endpoint(best.restapi->spec, observed.meta->ns, best.meta.name);
  // An external slurmctld has its own ClusterName. spec.clusterName might differ from it, and cannot be changed.
  return Serving{best.meta.name,
                 {endpoint.host, static_cast<std::uint16_t>(endpoint.port),
                  spec.external ? "" : api::cluster_name(spec, observed.meta->ns, observed.meta->name)},
                 jwt_key_ref(spec, observed.meta->name)};
}

}  // namespace slinky
