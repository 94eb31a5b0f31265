// Builds Services: merges the ServiceSpec of users over ours.
#pragma once

#include <string_view>

#include "core/json.hpp"
#include "kube/object.hpp"

namespace op {

/// Returns a TCP port of a Service. `target`: the name of the container's port. `node_port` 0: none requested.
core::Json service_port(std::string_view name, int port, std::string_view target, int node_port = 0);

/// Returns `base` with the user's ServiceSpec merged over it, and then our selector and ports. Users may add to these but not
/// replace them. Drops externalIPs, with which a user of a namespace could take over traffic of others (CVE-2020-8554).
core::Json merge_service_spec(core::Json base, const core::Json& over, const kube::StringMap& selector, core::Json ports);

}  // namespace op
