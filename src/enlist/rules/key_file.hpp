// The key file of auth/slurm as the rotation of the key sees it: slurm.jwks. All keys in it verify. The one with "use":
// "default" signs, or else the first.
//
// A slurm.key cannot be rotated: a configless slurmd notes in its environment which of the two files it has found when it was
// started, and keeps to it when it reloads (Slurm, src/common/fetch_config.c, 24.11 to 26.05). Otherwise the two go together:
// with a slurm.key, any token is verified with that key, and with a slurm.jwks, a token without a kid is verified with the key
// that signs (src/plugins/auth/slurm/internal.c).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace enlist {

inline constexpr std::string_view kJwksFile = "slurm.jwks";

/// A key without its secret.
struct KeyId {
  std::string kid;
  std::string print;  ///< Tells keys apart, and says nothing about their content. "": any key with this kid.
  friend bool operator==(const KeyId&, const KeyId&) = default;
};

/// The keys of a file, without their secrets.
struct KeySet {
  std::string revision;  ///< AuthKey::revision.
  std::vector<KeyId> keys;
  std::string signer;  ///< The kid of the key that signs.
  std::string note{};  ///< KeyChange::note.
  friend bool operator==(const KeySet&, const KeySet&) = default;
};

/// Reads the content of a key file. No error contains a part of it. Error: kInvalid, if Slurm does not take such a file, or if
/// it cannot be rotated.
[[nodiscard]] core::Result<KeySet> key_set_of(std::string_view file, std::string_view revision, std::string_view content);

/// What a key file becomes.
struct KeyChange {
  std::vector<std::string> kids;  ///< The keys that it has then.
  std::string signer;
  std::string fresh_kid{};  ///< The key that is made, if the file does not have it. "": none.
  std::string note{};       ///< A text for the file, which Slurm does not read. "": none.
  friend bool operator==(const KeyChange&, const KeyChange&) = default;
};
/// Returns the content of a slurm.jwks with other keys or another signer. `fresh`: the bytes of the key that is made. Entries
/// keep what they have otherwise. The same arguments give the same text. Error: kInvalid, if the file lacks a key.
[[nodiscard]] core::Result<std::string> changed_keys(std::string_view content, const KeyChange& change, std::string_view fresh);

/// True if the keys are these, in any order, and this one signs.
[[nodiscard]] bool has_keys(const KeySet& set, const std::vector<KeyId>& keys, std::string_view signer);

}  // namespace enlist
