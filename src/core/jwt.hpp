// HS256 JSON web tokens, as slurmrestd takes them.
#pragma once

#include <string>
#include <string_view>

#include "core/json.hpp"

namespace core {

/// The compact form of a token with these claims, signed with the key's bytes as they are.
std::string sign_hs256(std::string_view key, const Json& claims);

}  // namespace core
