#include "core/jwt.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <stdexcept>

#include "core/base64.hpp"
#include "core/hash.hpp"

namespace core {

std::string sign_hs256(std::string_view key, const Json& claims) {
  const std::string text = base64url_encode(R"({"alg":"HS256","typ":"JWT"})") + "." + base64url_encode(canonical(claims));
  std::array<unsigned char, EVP_MAX_MD_SIZE> mac;
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
           text.size(), mac.data(), &size) == nullptr) {
    throw std::runtime_error("HMAC failed");
  }
  return text + "." + base64url_encode({reinterpret_cast<const char*>(mac.data()), size});
}

}  // namespace core
