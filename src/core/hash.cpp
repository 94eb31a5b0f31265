#include "core/hash.hpp"

#include <openssl/evp.h>

#include <array>
#include <stdexcept>

namespace core {
namespace {

using Digest = std::array<unsigned char, 32>;

Digest sha256(std::string_view bytes) {
  Digest digest;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("SHA-256 failed");
  }
  return digest;
}

}  // namespace

std::string hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(2 * bytes.size());
  for (const char c : bytes) {
    out += kDigits[static_cast<unsigned char>(c) >> 4U];
    out += kDigits[static_cast<unsigned char>(c) & 15U];
  }
  return out;
}

std::string sha256_hex(std::string_view bytes) {
  const Digest digest = sha256(bytes);
  return hex({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

std::string short_digest(std::string_view text) {
  return sha256_hex(text).substr(0, 16);
}

std::string short_hash(std::string_view bytes, std::size_t n) {
  constexpr std::string_view kSafe = "bcdfghjklmnpqrstvwxz2456789";
  const Digest digest = sha256(bytes);
  if (n > digest.size()) throw std::invalid_argument("short_hash: at most 32 characters");
  std::string out;
  for (std::size_t i = 0; i < n; ++i) out += kSafe[digest[i] % kSafe.size()];
  return out;
}

std::string canonical(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace core
