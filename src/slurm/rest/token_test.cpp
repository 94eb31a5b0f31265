#include "slurm/rest/token.hpp"

#include <gtest/gtest.h>

#include "core/base64.hpp"
#include "core/json.hpp"
#include "core/jwt.hpp"
#include "core/testing/manual_loop.hpp"

namespace slurm {
namespace {

core::Json claims(const std::string& token) {
  const std::size_t first = token.find('.');
  std::string body = token.substr(first + 1, token.rfind('.') - first - 1);
  for (char& c : body) c = c == '-' ? '+' : c == '_' ? '/' : c;
  while (body.size() % 4 != 0) body += '=';
  return *core::parse_json(*core::base64_decode(body));
}

TEST(Tokens, SayWhoAndHowLong) {
  core::ManualClock clock;
  Hs256Tokens tokens(clock, "key", "slurm", core::Duration(std::chrono::minutes(10)));
  const Credentials credentials = tokens.current();
  EXPECT_EQ(credentials.user, "slurm");
  const std::int64_t now = clock.wall().since_epoch.count() / 1000;
  const core::Json want{{"sun", "slurm"}, {"iat", now}, {"exp", now + 600}};
  EXPECT_EQ(claims(credentials.token), want);
  EXPECT_EQ(credentials.token, core::sign_hs256("key", want));
}

TEST(Tokens, AreKeptForFourFifthsOfTheirLife) {
  core::ManualClock clock;
  Hs256Tokens tokens(clock, "key", "slurm", core::Duration{1000'000});
  const std::string first = tokens.current().token;
  clock.move(core::Duration{799'999});
  EXPECT_EQ(tokens.current().token, first);
  clock.move(core::Duration{1});
  EXPECT_NE(tokens.current().token, first);
}

TEST(Tokens, AreRenewedWhenTheWallClockJumpsEitherWay) {
  core::ManualClock clock;
  Hs256Tokens tokens(clock, "key", "slurm", core::Duration{1000'000});
  const std::string first = tokens.current().token;
  clock.set_wall(clock.wall() + core::Duration{900'000});
  const std::string second = tokens.current().token;
  EXPECT_NE(second, first);
  clock.set_wall(clock.wall() - core::Duration{5'000'000});
  EXPECT_NE(tokens.current().token, second);
}

TEST(Tokens, ARefusedOneIsNotShownAgain) {
  core::ManualClock clock;
  Hs256Tokens tokens(clock, "key", "slurm");
  const std::string first = tokens.current().token;
  clock.move(core::Duration{2000});
  EXPECT_EQ(tokens.current().token, first);
  tokens.refused();
  EXPECT_NE(tokens.current().token, first);
}

}  // namespace
}  // namespace slurm
