// The key file of auth/slurm, slurm.jwks, for the rotation of the key. Slurm verifies with all keys in the file, and signs with
// the key that has "use": "default", or else with the first one.
//
// A slurm.key cannot be rotated: a configless slurmd records in its environment which of the two files it found at its start,
// and uses only that file when it reloads (Slurm, src/common/fetch_config.c, 24.11 to 26.05). Otherwise the two files are
// compatible: with a slurm.key, any token is verified with that key, and with a slurm.jwks, a token without a kid is verified
// with the key that signs (src/plugins/auth/slurm/internal.c).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace enlist {

inline constexpr std::string_view kJwksFile = "slurm.jwks", kPlainKeyFile = "slurm.key";

/// Returns an id of the content of a key file. Different contents have different ids. The id reveals nothing of the keys.
[[nodiscard]] std::string key_revision(std::string_view file, std::string_view content);

/// A key without its secret.
struct KeyId {
  std::string kid;
  std::string print;  ///< A digest that reveals nothing of the key. "": any key with this kid.
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

/// Parses the content of a key file. Errors contain no part of the content. Error: kInvalid, if Slurm does not accept the file,
/// or if its keys cannot be rotated.
[[nodiscard]] core::Result<KeySet> key_set_of(std::string_view file, std::string_view revision, std::string_view content);

/// The keys that a key file is to have.
struct KeyChange {
  std::vector<std::string> kids;  ///< All keys of the changed file.
  std::string signer;
  std::string fresh_kid{};  ///< The kid of a key to create if the file lacks it. "": none.
  std::string note{};       ///< A text in the file that Slurm ignores. "": none.
  friend bool operator==(const KeyChange&, const KeyChange&) = default;
};
/// Returns the content of a slurm.jwks after the change. `fresh`: the bytes of KeyChange::fresh_kid. Members of an entry other
/// than "use" stay as they are. The same arguments give the same text. Error: kInvalid, if the file lacks a key or is invalid.
[[nodiscard]] core::Result<std::string> changed_keys(std::string_view content, const KeyChange& change, std::string_view fresh);

/// True if the set has exactly these keys, in any order, and `signer` signs.
[[nodiscard]] bool has_keys(const KeySet& set, const std::vector<KeyId>& keys, std::string_view signer);

}  // namespace enlist
