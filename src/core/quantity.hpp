// Kubernetes quantities ("500m", "2", "1.5Gi", "3e6"): limits of CPU and memory, sizes of volumes.
#pragma once

#include <optional>

#include "core/json.hpp"

namespace core {

/// The value in whole units ("500m" is 0.5, "1Ki" is 1024); manifests write it as text or as a number. Equal quantities give
/// equal values. Empty for what is none, or has more than 18 digits.
std::optional<long double> quantity(const Json& value);

}  // namespace core
