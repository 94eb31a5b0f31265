// Finds rules of a pod that no node can ever satisfy.
#pragma once

#include <string>

#include "core/json.hpp"
#include "kube/object.hpp"

namespace bridge {

/// Returns a message about the first term of the required node affinity that no node can match together with the node selector.
/// The message names the term and the label. "": there is no such term. Kubernetes ignores such a term if other terms match,
/// but it is a mistake of the user. `affinity`: spec.affinity of a pod.
[[nodiscard]] std::string contradiction(const kube::StringMap& node_selector, const core::Json& affinity);

}  // namespace bridge
