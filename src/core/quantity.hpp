// Kubernetes quantities ("500m", "2", "1.5Gi", "3e6"): limits of CPU and memory, sizes of volumes.
#pragma once

#include <optional>

#include "core/json.hpp"

namespace core {

/// Returns the value in whole units ("500m" is 0.5, "1Ki" is 1024). Accepts strings and numbers, as manifests do. Equal
/// quantities give equal values. Returns nullopt for anything else, and for a quantity with more than 18 digits.
std::optional<long double> quantity(const Json& value);

}  // namespace core
