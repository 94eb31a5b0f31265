#include "core/base64.hpp"

#include <algorithm>
#include <cstdint>

namespace core {
namespace {

constexpr std::string_view kStandard = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kUrl = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string encode(std::string_view bytes, std::string_view alphabet, bool pad) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) group = group << 8 | (k < n ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k <= n; ++k) out += alphabet[group >> (18 - 6 * k) & 63];
    if (pad) out.append(3 - n, '=');
  }
  return out;
}

int digit(char c) {
  const std::size_t at = kStandard.find(c);
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

}  // namespace

std::string base64_encode(std::string_view bytes) {
  return encode(bytes, kStandard, true);
}
std::string base64url_encode(std::string_view bytes) {
  return encode(bytes, kUrl, false);
}

Result<std::string> base64_decode(std::string_view text) {
  const auto bad = [] { return fail(ErrorCode::kInvalid, "not base64"); };
  std::string out;
  std::uint32_t group = 0;
  int digits = 0;
  int padding = 0;
  for (char c : text) {
    if (c == '\n' || c == '\r') continue;
    const int value = c == '=' ? 0 : digit(c);
    if (value < 0 || (padding > 0 && c != '=')) return bad();
    if (c == '=') ++padding;
    group = group << 6 | static_cast<std::uint32_t>(value);
    if (++digits < 4) continue;
    if (padding > 2) return bad();
    for (int k = 0; k < 3 - padding; ++k) out += static_cast<char>(group >> (16 - 8 * k) & 255);
    group = 0;
    digits = 0;
  }
  if (digits != 0) return bad();
  return out;
}

}  // namespace core
