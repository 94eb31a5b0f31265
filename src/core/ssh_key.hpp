// SSH key pairs in the formats of OpenSSH, for host keys.
//
//   core::SshKeyPair pair = core::make_ssh_key(core::SshKeyType::kEd25519, "login");
//   // pair.private_key: "-----BEGIN OPENSSH PRIVATE KEY-----\n...", pair.public_key: "ssh-ed25519 AAAA... login\n"
//
// The keys have no passphrase.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace core {

enum class SshKeyType { kRsa, kEcdsa, kEd25519 };
/// Parses "rsa", "ecdsa" and "ed25519", as in ssh_host_rsa_key; nullopt for anything else.
std::optional<SshKeyType> ssh_key_type(std::string_view name);

struct SshKeyPair {
  std::string private_key;  ///< The contents of a file such as ssh_host_rsa_key.
  std::string public_key;   ///< One line, with the newline.
};

/// Makes a key: RSA with 3072 bits, ECDSA on the curve P-256, or Ed25519. Do not call it on the loop, because RSA takes some
/// tenths of a second.
SshKeyPair make_ssh_key(SshKeyType type, std::string_view comment);
/// Makes an Ed25519 key from a seed of 32 bytes. The same seed always gives the same key.
SshKeyPair ssh_key_of_seed(std::string_view seed, std::string_view comment);

}  // namespace core
