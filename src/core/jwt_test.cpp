#include "core/jwt.hpp"

#include <gtest/gtest.h>

namespace core {
namespace {

TEST(Jwt, SignsAsOthersDo) {
  // The token was made with: printf '%s' "$head.$claims" | openssl dgst -sha256 -hmac secret -binary | basenc --base64url
  EXPECT_EQ(sign_hs256("secret", {{"sun", "slurm"}, {"exp", 1767323045}}),
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJleHAiOjE3NjczMjMwNDUsInN1biI6InNsdXJtIn0."
            "y7iKOYkOCAqKKnSSS3Q2gUkuCpGMKgOR0gS6TAZh6gg");
}

TEST(Jwt, KeysMayHoldAnyByte) {
  EXPECT_NE(sign_hs256(std::string("a\0b", 3), Json::object()), sign_hs256("a", Json::object()));
}

}  // namespace
}  // namespace core
