#include "operator/testing/fields.hpp"

#include <gtest/gtest.h>

#include "operator/token/observe.hpp"

namespace op::token {
namespace {

using namespace op::testing;

TEST(Fields, EachOfATokenHasAnEffectThatIsTakenBack) {
  const Json base = Json::parse(R"({
    "jwtKeyRef": {"name": "mine", "key": "k"}, "jwtHs256KeyRef": {"name": "other", "key": "k"},
    "username": "alice", "lifetime": "1h", "refresh": false,
    "secretRef": {"name": "there", "key": "token"}})");
  // jwtKeyRef takes precedence over jwtHs256KeyRef.
  const Findings wanted{{"jwtKeyRef.optional", "told"},      {"secretRef.optional", "told"},
                        {"jwtHs256KeyRef", "no effect"},     {"jwtHs256KeyRef.name", "no effect"},
                        {"jwtHs256KeyRef.key", "no effect"}, {"jwtHs256KeyRef.optional", "told"}};
  EXPECT_EQ(field_findings("Token", base, states_of<TokenController>("Token")), wanted);
}

TEST(Fields, TheOldNameOfATokensKeyHasTheSameEffect) {
  const Json base = Json::parse(R"({"jwtHs256KeyRef": {"name": "mine", "key": "k"}, "username": "alice"})");
  const Findings wanted{{"jwtHs256KeyRef.optional", "told"}};
  EXPECT_EQ(field_findings("Token", base, states_of<TokenController>("Token")), wanted);
}

}  // namespace
}  // namespace op::token
