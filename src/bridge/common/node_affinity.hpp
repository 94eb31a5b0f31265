// Rules for nodes that no node can ever satisfy.
#pragma once

#include <string>

#include "core/json.hpp"
#include "kube/object.hpp"

namespace bridge {

/// Returns a message with the first term of the required node affinity that no node can match together with the node selector,
/// and with the label in question; "" if there is none. `affinity` is spec.affinity of a pod. One such term is reported even if
/// other terms can match: Kubernetes ignores the term, but it is a mistake of the user.
[[nodiscard]] std::string contradiction(const kube::StringMap& node_selector, const core::Json& affinity);

}  // namespace bridge
