// Services: our spec with the user's merged over it.
#pragma once

#include <string_view>

#include "core/json.hpp"
#include "kube/object.hpp"

namespace op {

/// A TCP port; `target` is the name of the container's port; node_port 0: none asked for.
core::Json service_port(std::string_view name, int port, std::string_view target, int node_port = 0);

/// `base` with the user's ServiceSpec over it; then our selector and ports, which the user may add to but not replace.
/// externalIPs are dropped: they let a namespace's user take over traffic of others (CVE-2020-8554).
core::Json merge_service_spec(core::Json base, const core::Json& over, const kube::StringMap& selector, core::Json ports);

}  // namespace op
