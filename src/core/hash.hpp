// Hashes that identify contents, and that make names.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/json.hpp"

namespace core {

/// Lower-case hexadecimal, two characters for each byte.
std::string hex(std::string_view bytes);
/// Lower-case hexadecimal SHA-256, 64 characters.
std::string sha256_hex(std::string_view bytes);
/// The first 16 characters of sha256_hex, to detect changes, also across restarts.
std::string short_digest(std::string_view text);
/// Returns n (at most 32) characters that are safe in names and spell no words: no vowels, no 0, 1 or 3.
std::string short_hash(std::string_view bytes, std::size_t n);
/// Returns the same text for the same content: sorted keys, no white space. Replaces bytes that are not UTF-8.
std::string canonical(const Json& value);

}  // namespace core
