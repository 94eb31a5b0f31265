// Label selectors as the API takes them (apimachinery's labels.Parse), as far as our own selectors go.
#pragma once

#include <string_view>

#include "kube/object.hpp"

namespace kube {

/// True when labels satisfy a selector as the API takes it: "a=b,c!=d,e in (x,y),f notin (z),g,!h". Anything it cannot read
/// does not match.
bool matches_labels(std::string_view selector, const StringMap& labels);

}  // namespace kube
