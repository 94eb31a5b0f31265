// Hashes for telling contents apart and for making names.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/json.hpp"

namespace core {

/// Lower-case hexadecimal, two characters a byte.
std::string hex(std::string_view bytes);
/// Lower-case hexadecimal SHA-256, 64 characters.
std::string sha256_hex(std::string_view bytes);
/// The first 16 characters of sha256_hex: to see changes by, also across restarts.
std::string short_digest(std::string_view text);
/// n (at most 32) characters of an alphabet that is safe in names and spells no words: no vowels, no 0, 1 or 3.
std::string short_hash(std::string_view bytes, std::size_t n);
/// One text for one content: sorted keys, no white space. Bytes that are not UTF-8 are replaced.
std::string canonical(const Json& value);

}  // namespace core
