// Base64 as Kubernetes Secrets (standard, padded) and JWTs (URL alphabet, unpadded) write it.
//
// Folder src/core: values and interfaces that every room needs: results, clocks, loops, JSON, hashes, logs. Uses no other
// room.
#pragma once

#include <string>
#include <string_view>

#include "core/result.hpp"

namespace core {

std::string base64_encode(std::string_view bytes);
std::string base64url_encode(std::string_view bytes);  ///< No padding.
/// Reads the standard alphabet with padding; line breaks are skipped. Error: kInvalid.
Result<std::string> base64_decode(std::string_view text);

}  // namespace core
