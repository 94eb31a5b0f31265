// The key file of auth/slurm as the rotation of the key sees it: slurm.jwks, or a slurm.key that becomes one.
//
// All keys of a slurm.jwks verify. The one with "use": "default" signs, or else the first. A slurm.key is one key without a
// kid: whoever has only that verifies any token with it, and whoever has a slurm.jwks verifies a token without a kid with the
// key that signs (Slurm, src/plugins/auth/slurm/internal.c, the same in 24.11 and 26.05). So a slurm.jwks whose signing key is
// the one of slurm.key works together with that slurm.key.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace enlist {

inline constexpr std::string_view kJwksFile = "slurm.jwks";
inline constexpr std::string_view kPlainKeyFile = "slurm.key";

/// A key without its secret.
struct KeyId {
  std::string kid;    ///< "": the key of a slurm.key.
  std::string print;  ///< Tells keys apart, and says nothing about their content. "": any key with this kid.
  friend bool operator==(const KeyId&, const KeyId&) = default;
};

/// The keys of a file, without their secrets.
struct KeySet {
  std::string file;      ///< "slurm.jwks" or "slurm.key".
  std::string revision;  ///< AuthKey::revision.
  std::vector<KeyId> keys;
  std::string signer;  ///< The kid of the key that signs.
  friend bool operator==(const KeySet&, const KeySet&) = default;
};

/// Reads the content of a key file. No error contains a part of it. Error: kInvalid, if Slurm does not take such a file, or if
/// it cannot be rotated.
[[nodiscard]] core::Result<KeySet> key_set_of(std::string_view file, std::string_view revision, std::string_view content);

/// What a key file becomes.
struct KeyChange {
  std::vector<std::string> kids;  ///< The keys that it has then.
  std::string signer;
  std::string plain_kid{};  ///< The kid that the key of a slurm.key gets.
  std::string fresh_kid{};  ///< The key that is made, if the file does not have it. "": none.
  friend bool operator==(const KeyChange&, const KeyChange&) = default;
};
/// Returns the content of a slurm.jwks with other keys or another signer. `fresh`: the bytes of the key that is made. Entries
/// keep what they have otherwise. The same arguments give the same text. Error: kInvalid, if the file lacks a key.
[[nodiscard]] core::Result<std::string> changed_keys(std::string_view file, std::string_view content, const KeyChange& change,
                                                     std::string_view fresh);

/// True if the keys are these, in any order, and this one signs.
[[nodiscard]] bool has_keys(const KeySet& set, const std::vector<KeyId>& keys, std::string_view signer);

}  // namespace enlist
