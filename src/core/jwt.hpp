// HS256 JSON web tokens, as slurmrestd accepts them.
#pragma once

#include <string>
#include <string_view>

#include "core/json.hpp"

namespace core {

/// Signs the claims with the bytes of the key, and returns the compact form of the token.
std::string sign_hs256(std::string_view key, const Json& claims);

}  // namespace core
