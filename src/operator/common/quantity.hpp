// Kubernetes quantities ("500m", "2", "1.5Gi", "3e6"), as far as limits of CPU and memory need them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/json.hpp"

namespace op {

/// The value in whole units, rounded up ("500m" is 1, "1Ki" is 1024). Empty for text that is no quantity or below zero.
std::optional<std::int64_t> quantity(std::string_view text);
/// The same for a JSON value: manifests write quantities as strings or as numbers.
std::optional<std::int64_t> quantity_of(const core::Json& value);

}  // namespace op
