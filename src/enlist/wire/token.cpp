#include "enlist/wire/token.hpp"

#include <algorithm>
#include <stdexcept>

#include "core/base64.hpp"
#include "core/hash.hpp"

namespace enlist {
namespace {

// The bytes after the prefix: the fingerprint (32), the secret (16), the port (2, big endian), the host, and the first 8 bytes
// of the SHA-256 of all these. So a token with a typing error is refused, and its secret is not sent to some other host.
constexpr std::string_view kPrefix = "enlist1_";
constexpr std::string_view kAnyPrefix = "enlist";
constexpr std::size_t kKeyBytes = 32, kSecretBytes = 16, kPortBytes = 2, kSumBytes = 8;
constexpr std::size_t kHostAt = kKeyBytes + kSecretBytes + kPortBytes;
constexpr std::size_t kMaxHost = 253;  // The longest host name: RFC 1035.

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  throw std::invalid_argument("write_token: not lower-case hexadecimal");
}

std::string from_hex(std::string_view digits, std::size_t bytes) {
  if (digits.size() != 2 * bytes) throw std::invalid_argument("write_token: wrong number of hexadecimal digits");
  std::string out;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    out += static_cast<char>(hex_digit(digits[i]) * 16 + hex_digit(digits[i + 1]));
  }
  return out;
}

bool is_host(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view(".-_:%").find(c) != std::string_view::npos;
  };
  return !text.empty() && text.size() <= kMaxHost && std::all_of(text.begin(), text.end(), fits);
}

std::string checksum(std::string_view bytes) {
  return from_hex(core::sha256_hex(bytes).substr(0, 2 * kSumBytes), kSumBytes);
}

/// Returns the bytes of an unpadded base64url text; "" if it is malformed or not what base64url_encode would have written.
std::string decode(std::string_view text) {
  std::string standard(text);
  std::replace(standard.begin(), standard.end(), '-', '+');
  std::replace(standard.begin(), standard.end(), '_', '/');
  standard.append((4 - standard.size() % 4) % 4, '=');
  const auto bytes = core::base64_decode(standard);
  return bytes && core::base64url_encode(*bytes) == text ? *bytes : "";
}

}  // namespace

std::string write_token(const TokenText& token) {
  if (!is_host(token.host) || token.port == 0) throw std::invalid_argument("write_token: no host or port");
  std::string bytes = from_hex(token.coordinator, kKeyBytes) + from_hex(token.secret, kSecretBytes);
  bytes += static_cast<char>(token.port >> 8U);
  bytes += static_cast<char>(token.port & 0xffU);
  bytes += token.host;
  return std::string(kPrefix) + core::base64url_encode(bytes + checksum(bytes));
}

core::Result<TokenText> read_token(std::string_view text) {
  const auto bad = [](std::string why) { return core::fail(core::ErrorCode::kInvalid, "the token " + std::move(why)); };
  if (!text.starts_with(kPrefix)) {
    if (text.starts_with(kAnyPrefix)) return bad("is of another version of slurm-enlist, or damaged: ask for a new one");
    return bad("does not begin with " + std::string(kPrefix));
  }
  const std::string all = decode(text.substr(kPrefix.size()));
  const std::string bytes = all.substr(0, all.size() - std::min(all.size(), kSumBytes));
  if (bytes.size() <= kHostAt || bytes + checksum(bytes) != all)
    return bad("is incomplete or has a typing error: copy all of it, or ask for a new one");
  TokenText out;
  out.coordinator = core::hex(bytes.substr(0, kKeyBytes));
  out.secret = core::hex(bytes.substr(kKeyBytes, kSecretBytes));
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(bytes[at]); };
  out.port = static_cast<std::uint16_t>(byte(kHostAt - 2) << 8U | byte(kHostAt - 1));
  out.host = bytes.substr(kHostAt);
  if (!is_host(out.host) || out.port == 0) return bad("names no valid host and port: ask for a new one");
  return out;
}

std::string digest_of(std::string_view secret) {
  return core::sha256_hex(secret);
}

}  // namespace enlist
