// Hashes that identify contents, and hashes that are parts of names.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/json.hpp"

namespace core {

/// Returns lower-case hexadecimal digits, two for each byte.
std::string hex(std::string_view bytes);
/// Returns the SHA-256 in lower-case hexadecimal digits, 64 characters.
std::string sha256_hex(std::string_view bytes);
/// Returns the first 16 characters of sha256_hex. Use them to detect changes, even across a restart of the process.
std::string short_digest(std::string_view text);
/// Returns n (at most 32) characters that are safe in names. No vowels and no 0, 1 or 3, so that they spell no words.
std::string short_hash(std::string_view bytes, std::size_t n);
/// Returns the JSON text with sorted keys and no white space: the same content gives the same text. Replaces invalid UTF-8.
std::string canonical(const Json& value);

}  // namespace core
