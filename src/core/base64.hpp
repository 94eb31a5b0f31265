// Base64 as in Kubernetes Secrets (standard, padded) and in JWTs (URL alphabet, unpadded).
//
// Folder src/core: values and interfaces that the other folders need, such as results, clocks, loops, JSON, hashes and logs.
// Uses no other folder.
#pragma once

#include <string>
#include <string_view>

#include "core/result.hpp"

namespace core {

std::string base64_encode(std::string_view bytes);
std::string base64url_encode(std::string_view bytes);  ///< Without padding.
/// Decodes the standard alphabet with padding. Ignores line breaks. Error: kInvalid.
Result<std::string> base64_decode(std::string_view text);

}  // namespace core
