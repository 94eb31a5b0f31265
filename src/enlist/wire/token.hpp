// The text of a join token. It contains the address of the coordinator, the fingerprint of its key, and the secret.
#pragma once

#include <string>
#include <string_view>

#include "core/result.hpp"

namespace enlist {

struct TokenText {
  std::string host;         ///< Name or address of the coordinator.
  std::uint16_t port = 0;   ///< The port of the listener for joining.
  std::string coordinator;  ///< The fingerprint of the coordinator's key.
  std::string secret;       ///< 32 hex digits.
};
/// Returns "enlist1_" and one word of letters, digits, "-" and "_" (base64url). Throws std::invalid_argument, for a bug of the
/// caller, if the host has other characters than letters, digits and ".-_:%", or if another member is not as described above.
[[nodiscard]] std::string write_token(const TokenText& token);
/// Parses the text of a token. Error: kInvalid, without any part of the token in the message.
[[nodiscard]] core::Result<TokenText> read_token(std::string_view text);
/// Returns the SHA-256 of the secret in hex, which is the token's key in Contents::tokens.
[[nodiscard]] std::string digest_of(std::string_view secret);

}  // namespace enlist
