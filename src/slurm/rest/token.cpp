#include "slurm/rest/token.hpp"

#include <utility>

#include "core/jwt.hpp"

namespace slurm {
namespace {

std::int64_t seconds(core::Duration d) {
  return std::chrono::duration_cast<std::chrono::seconds>(d).count();
}

}  // namespace

Hs256Tokens::Hs256Tokens(const core::Clock& clock, std::string key, std::string user, core::Duration lifetime)
    : clock_(clock), key_(std::move(key)), user_(std::move(user)), lifetime_(lifetime) {}

bool Hs256Tokens::due() const {
  if (token_.empty()) return true;
  const core::Duration keep = lifetime_ * 8 / 10;
  const core::Duration wall_age = clock_.wall() - minted_wall_;
  return clock_.mono() - minted_ >= keep || wall_age >= keep || wall_age < core::Duration{0};
}

Credentials Hs256Tokens::current() {
  if (due()) {
    minted_ = clock_.mono();
    minted_wall_ = clock_.wall();
    const std::int64_t issued = seconds(minted_wall_.since_epoch);
    token_ = core::sign_hs256(key_, {{"iat", issued}, {"exp", issued + seconds(lifetime_)}, {"sun", user_}});
  }
  return {user_, token_};
}

}  // namespace slurm
