// Matches label selectors in the syntax of the Kubernetes API (labels.Parse of apimachinery), as far as our selectors need it.
#pragma once

#include <string_view>

#include "kube/object.hpp"

namespace kube {

/// Reports whether the labels satisfy a selector such as "a=b,c!=d,e in (x,y),f notin (z),g,!h". An empty selector matches
/// everything. A selector that cannot be parsed matches nothing.
bool matches_labels(std::string_view selector, const StringMap& labels);

}  // namespace kube
