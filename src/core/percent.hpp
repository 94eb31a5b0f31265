// Percent-encoding of texts in URLs (RFC 3986).
#pragma once

#include <string>
#include <string_view>

namespace core {

/// Encodes a text as a part of a path, or as a value in a query. Unreserved characters, and the characters in `also_plain`, are
/// kept.
[[nodiscard]] std::string percent_encode(std::string_view text, std::string_view also_plain = {});

}  // namespace core
