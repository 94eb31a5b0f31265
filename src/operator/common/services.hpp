// Builds Services: merges the ServiceSpec of users over ours.
#pragma once

#include <string_view>

#include "core/json.hpp"
#include "kube/object.hpp"

namespace op {

/// Returns a TCP port of a Service. `target`: the name of the container's port. `node_port` 0: the user requests no particular
/// node port.
core::Json service_port(std::string_view name, int port, std::string_view target, int node_port = 0);

/// Returns `base`, with `over`, the user's ServiceSpec, merged over it, and with our `selector` and `ports`. Users can add
/// labels and ports, but cannot replace our labels and ports. Drops externalIPs, because with externalIPs a user of one
/// namespace could take over the traffic of other namespaces (CVE-2020-8554).
core::Json merge_service_spec(core::Json base, const core::Json& over, const kube::StringMap& selector, core::Json ports);

}  // namespace op
