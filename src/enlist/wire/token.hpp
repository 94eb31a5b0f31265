// The text of a one-time token. It says where the coordinator is, which key it has, and the secret.
#pragma once

#include <string>
#include <string_view>

#include "core/result.hpp"

namespace enlist {

struct TokenText {
  std::string host;         ///< Name or address of the coordinator.
  std::uint16_t port = 0;   ///< The listener for joining.
  std::string coordinator;  ///< The fingerprint of the coordinator's key.
  std::string secret;       ///< 32 hex digits.
};
/// Returns one word of letters, digits, "-" and "_" (base64url), behind "enlist1_". Throws std::invalid_argument, which is a
/// bug of the caller, if the host has other characters than letters, digits and ".-_:%", or if the other members are not as
/// above.
[[nodiscard]] std::string write_token(const TokenText& token);
/// Error: kInvalid, without any part of the token in the message.
[[nodiscard]] core::Result<TokenText> read_token(std::string_view text);
/// Returns the digest under which the store knows the secret: SHA-256 in hex.
[[nodiscard]] std::string digest_of(std::string_view secret);

}  // namespace enlist
