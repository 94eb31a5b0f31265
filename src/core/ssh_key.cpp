#include "core/ssh_key.hpp"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>

#include <array>
#include <cstdint>
#include <memory>
#include <stdexcept>

#include "core/base64.hpp"

namespace core {
namespace {

constexpr std::size_t kRsaBits = 3072;
constexpr std::size_t kSeedBytes = 32;

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Key = std::unique_ptr<EVP_PKEY, FreeKey>;

// Throws on failure: if OpenSSL cannot make a key, no key can be made, and no caller could handle the error.
Key made(EVP_PKEY* key) {
  if (key == nullptr) throw std::runtime_error("OpenSSL cannot make an SSH key");
  return Key(key);
}

void check(bool ok) {
  if (!ok) throw std::runtime_error("OpenSSL does not tell the parts of an SSH key");
}

// Functions that write the types of RFC 4251, section 5.
std::string uint32(std::uint32_t n) {
  return {static_cast<char>(n >> 24), static_cast<char>(n >> 16), static_cast<char>(n >> 8), static_cast<char>(n)};
}

std::string text(std::string_view bytes) {
  return uint32(static_cast<std::uint32_t>(bytes.size())) + std::string(bytes);
}

std::string mpint(const Key& key, const char* name) {
  BIGNUM* number = nullptr;
  check(EVP_PKEY_get_bn_param(key.get(), name, &number) == 1);
  std::string out(static_cast<std::size_t>(BN_num_bytes(number)), '\0');
  BN_bn2bin(number, reinterpret_cast<unsigned char*>(out.data()));
  BN_clear_free(number);
  // Adds a zero byte, because the highest bit would make the number negative.
  if (!out.empty() && (static_cast<unsigned char>(out.front()) & 0x80U) != 0) out.insert(out.begin(), '\0');
  return text(out);
}

struct Parts {
  std::string name;          ///< "ssh-rsa"
  std::string public_part;   ///< The part after the name in the public key.
  std::string private_part;  ///< The part after the name in the private key.
};

Parts rsa() {
  const Key key = made(EVP_RSA_gen(kRsaBits));
  const std::string n = mpint(key, OSSL_PKEY_PARAM_RSA_N), e = mpint(key, OSSL_PKEY_PARAM_RSA_E);
  return {"ssh-rsa", e + n,
          n + e + mpint(key, OSSL_PKEY_PARAM_RSA_D) + mpint(key, OSSL_PKEY_PARAM_RSA_COEFFICIENT1) +
              mpint(key, OSSL_PKEY_PARAM_RSA_FACTOR1) + mpint(key, OSSL_PKEY_PARAM_RSA_FACTOR2)};
}

Parts ecdsa() {
  const Key key = made(EVP_EC_gen("P-256"));
  std::array<unsigned char, 65> point{};
  std::size_t size = 0;
  check(EVP_PKEY_get_octet_string_param(key.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size(), &size) == 1 &&
        size == point.size() && point.front() == 4);
  const std::string curve_and_point = text("nistp256") + text({reinterpret_cast<const char*>(point.data()), point.size()});
  return {"ecdsa-sha2-nistp256", curve_and_point, curve_and_point + mpint(key, OSSL_PKEY_PARAM_PRIV_KEY)};
}

Parts ed25519(std::string_view seed) {
  check(seed.size() == kSeedBytes);
  const Key key = made(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr,
                                                    reinterpret_cast<const unsigned char*>(seed.data()), seed.size()));
  std::array<unsigned char, 32> point{};
  std::size_t size = point.size();
  check(EVP_PKEY_get_raw_public_key(key.get(), point.data(), &size) == 1 && size == point.size());
  const std::string bytes(reinterpret_cast<const char*>(point.data()), point.size());
  return {"ssh-ed25519", text(bytes), text(bytes) + text(std::string(seed) + bytes)};
}

void wipe(std::string& secret) {
  OPENSSL_cleanse(secret.data(), secret.size());
}

std::string random_bytes(std::size_t n) {
  std::string out(n, '\0');
  check(RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(n)) == 1);
  return out;
}

/// Writes the format of OpenSSH's PROTOCOL.key, without a passphrase. The check numbers are constant, because they only serve
/// to detect a wrong passphrase.
SshKeyPair written(Parts parts, std::string_view comment) {
  constexpr std::size_t kBlock = 8, kLine = 70;
  const std::string public_blob = text(parts.name) + parts.public_part;
  const std::string checks = uint32(0x736c726d);
  std::string secret = checks + checks + text(parts.name) + parts.private_part + text(comment);
  for (char pad = 1; secret.size() % kBlock != 0; ++pad) secret += pad;
  std::string blob = std::string("openssh-key-v1") + '\0' + text("none") + text("none") + text("") + uint32(1) +
                     text(public_blob) + text(secret);
  std::string encoded = base64_encode(blob);
  SshKeyPair out;
  out.private_key = "-----BEGIN OPENSSH PRIVATE KEY-----\n";
  for (std::size_t at = 0; at < encoded.size(); at += kLine) out.private_key += encoded.substr(at, kLine) + "\n";
  out.private_key += "-----END OPENSSH PRIVATE KEY-----\n";
  out.public_key = parts.name + " " + base64_encode(public_blob) + " " + std::string(comment) + "\n";
  for (std::string* used : {&parts.private_part, &secret, &blob, &encoded}) wipe(*used);
  return out;
}

}  // namespace

std::optional<SshKeyType> ssh_key_type(std::string_view name) {
  if (name == "rsa") return SshKeyType::kRsa;
  if (name == "ecdsa") return SshKeyType::kEcdsa;
  if (name == "ed25519") return SshKeyType::kEd25519;
  return {};
}

SshKeyPair make_ssh_key(SshKeyType type, std::string_view comment) {
  switch (type) {
    case SshKeyType::kRsa:
      return written(rsa(), comment);
    case SshKeyType::kEcdsa:
      return written(ecdsa(), comment);
    case SshKeyType::kEd25519:
      break;
  }
  std::string seed = random_bytes(kSeedBytes);
  SshKeyPair out = ssh_key_of_seed(seed, comment);
  wipe(seed);
  return out;
}

SshKeyPair ssh_key_of_seed(std::string_view seed, std::string_view comment) {
  return written(ed25519(seed), comment);
}

}  // namespace core
