// Rules for nodes that no node can ever satisfy.
#pragma once

#include <string>

#include "core/json.hpp"
#include "kube/object.hpp"

namespace bridge {

/// Returns the term of the required node affinity that excludes every node, together with the node selector, and its label; ""
/// if there is none. `affinity` is spec.affinity of a pod. One term is enough: Kubernetes ignores it, but the user has made a
/// mistake.
[[nodiscard]] std::string contradiction(const kube::StringMap& node_selector, const core::Json& affinity);

}  // namespace bridge
