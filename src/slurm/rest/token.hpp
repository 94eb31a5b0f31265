// The program's identity for slurmrestd: a user name and a token. Tokens are minted from the cluster's HS256 key and renewed
// before they expire.
//
//   slurm::Hs256Tokens tokens(clock, key_bytes, "slurm");
//   request.headers["x-slurm-user-token"] = tokens.current().token;
//
// Key and tokens are secrets. They never appear in a log, a description or an error.
#pragma once

#include <string>

#include "core/clock.hpp"

namespace slurm {

struct Credentials {
  std::string user;
  std::string token;
};

class TokenSource {
 public:
  virtual ~TokenSource() = default;
  /// Returns credentials that are valid for some time to come.
  virtual Credentials current() = 0;
  /// Reports that the server refused the last credentials. The next current() returns new ones.
  virtual void refused() = 0;
};

/// HS256 tokens with the claims that auth/jwt reads: sun, iat, exp.
class Hs256Tokens final : public TokenSource {
 public:
  static constexpr core::Duration kLifetime{std::chrono::minutes{15}};

  /// `key` has the bytes of jwt_hs256.key. A token is renewed when 80 % of `lifetime` has passed on the monotonic clock, or
  /// when the wall clock is no longer within the first 80 % of `lifetime`.
  Hs256Tokens(const core::Clock& clock, std::string key, std::string user, core::Duration lifetime = kLifetime);
  Credentials current() override;
  void refused() override { token_.clear(); }
  [[nodiscard]] const std::string& user() const { return user_; }

 private:
  [[nodiscard]] bool due() const;

  const core::Clock& clock_;
  std::string key_;
  std::string user_;
  core::Duration lifetime_;
  std::string token_;
  core::MonoTime minted_;
  core::WallTime minted_wall_;
};

}  // namespace slurm
