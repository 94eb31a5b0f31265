// Token: a Slurm JWT for one user in a Secret, renewed before it expires unless `refresh` is false.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/common.hpp"
#include "api/field.hpp"
#include "core/clock.hpp"

namespace api {

/// The longest name of a Token. The name becomes the value of a label, which has at most this many characters.
inline constexpr std::size_t kMaxTokenName = 63;

struct TokenSpec {
  std::optional<SecretKeySelector> jwt_key_ref;
  std::optional<SecretKeySelector> jwt_hs256_key_ref;  ///< The old name of jwt_key_ref.
  std::string username;
  std::optional<core::Duration> lifetime;  ///< Absent: kDefaultTokenLifetime.
  bool refresh = true;
  std::optional<SecretKeySelector> secret_ref;

  /// Returns the reference to the JWT key under either name; null only in a spec that was not validated.
  [[nodiscard]] const SecretKeySelector* jwt_key() const {
    if (jwt_key_ref) return &*jwt_key_ref;
    return jwt_hs256_key_ref ? &*jwt_hs256_key_ref : nullptr;
  }
};

inline constexpr core::Duration kDefaultTokenLifetime{15 * 60 * 1000};

struct TokenStatus {
  std::int64_t observed_generation = 0;
  std::optional<core::WallTime> issued_at;
  std::vector<Condition> conditions;
};

struct Token {
  TokenSpec spec;
  TokenStatus status;
};

/// Returns the Secret that holds the token, and the data key: spec.secretRef, or <name>-jwt-<username> and SLURM_JWT. `name`
/// is the name of the Token, at most kMaxTokenName characters. If a Secret's name cannot contain the username, uses the valid
/// characters of the username and a hash of the username.
SecretKeySelector token_secret(const TokenSpec& spec, std::string_view name);

const FieldList& field_list(const TokenSpec*);
const FieldList& field_list(const TokenStatus*);
const FieldList& field_list(const Token*);

}  // namespace api
