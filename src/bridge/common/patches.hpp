// Operations of JSON patches (RFC 6902).
#pragma once

#include <string>
#include <string_view>

#include "core/json.hpp"

namespace bridge {

[[nodiscard]] core::Json add_op(std::string path, core::Json value);

/// Appends an operation that adds a label or an annotation. `map`: the path of the map of labels or annotations.
/// `there_is_one`: whether the object has this map.
void add_entry(core::Json& patch, const std::string& map, bool there_is_one, std::string_view name, std::string value);

}  // namespace bridge
