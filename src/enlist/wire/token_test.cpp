#include "enlist/wire/token.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <stdexcept>

#include "core/base64.hpp"
#include "core/hash.hpp"

namespace enlist {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

const std::string kKey = core::sha256_hex("key");
const std::string kSecret = core::sha256_hex("secret").substr(0, 32);

std::string refusal(std::string_view text) {
  const auto read = read_token(text);
  if (read) return "";
  EXPECT_EQ(read.error().code, core::ErrorCode::kInvalid);
  return read.error().message;
}

TEST(Token, IsOneWordThatSaysWhereAndWho) {
  const std::string text = write_token({"head.example", 6831, kKey, kSecret});
  EXPECT_THAT(text, MatchesRegex("enlist1_[A-Za-z0-9_-]+"));
  EXPECT_LT(text.size(), 120U) << "it fits into one line";
  const auto read = read_token(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->host, "head.example");
  EXPECT_EQ(read->port, 6831);
  EXPECT_EQ(read->coordinator, kKey);
  EXPECT_EQ(read->secret, kSecret);
}

RC_GTEST_PROP(Token, AnyHostAndPortComesBack, ()) {
  const auto host = *rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::elementOf(std::string("az09.-_:%AZ"))));
  RC_PRE(host.size() <= 253);
  const TokenText token{host, *rc::gen::inRange<std::uint16_t>(1, 65535), core::sha256_hex(host), kSecret};
  const auto read = read_token(write_token(token));
  RC_ASSERT(read.has_value());
  RC_ASSERT(read->host == token.host);
  RC_ASSERT(read->port == token.port);
  RC_ASSERT(read->coordinator == token.coordinator);
  RC_ASSERT(read->secret == token.secret);
}

TEST(Token, EveryChangedByteIsRefusedWithoutAnyPartOfIt) {
  // Hosts of different lengths, because base64 leaves bits of the last character unused.
  for (const std::string host : {"a", "ab", "abc", "10.0.0.1"}) {
    const std::string text = write_token({host, 6831, kKey, kSecret});
    for (std::size_t at = 0; at < text.size(); ++at) {
      for (const char c : {'A', 'b', '0', '-', '_', '=', ' ', '\n', '\0', static_cast<char>(text[at] ^ 1)}) {
        if (c == text[at]) continue;
        std::string changed = text;
        changed[at] = c;
        const std::string why = refusal(changed);
        ASSERT_NE(why, "") << at << " is " << static_cast<int>(c);
        for (std::size_t part = 8; part + 6 <= changed.size(); ++part)
          ASSERT_EQ(why.find(changed.substr(part, 6)), std::string::npos) << at;
        ASSERT_THAT(why, Not(HasSubstr(kSecret)));
      }
    }
  }
}

TEST(Token, WhatIsCutOrLongerIsRefused) {
  const std::string text = write_token({"head", 6831, kKey, kSecret});
  for (std::size_t n = 0; n < text.size(); ++n) EXPECT_NE(refusal(text.substr(0, n)), "") << n;
  for (const std::string more : {"A", "=", "\n", " ", "AAAA"}) EXPECT_NE(refusal(text + more), "") << more;
  EXPECT_NE(refusal(" " + text), "");
  EXPECT_NE(refusal(text + text), "");
}

TEST(Token, TheMessageSaysWhatToDo) {
  const std::string text = write_token({"head", 6831, kKey, kSecret});
  EXPECT_THAT(refusal("hello"), HasSubstr("does not begin with enlist1_"));
  EXPECT_THAT(refusal("enlist2_" + text.substr(8)), HasSubstr("another version"));
  EXPECT_THAT(refusal(text.substr(0, 30)), HasSubstr("incomplete"));
}

TEST(Token, ValidBytesWithoutAHostOrPortAreRefused) {
  const auto made = [](const std::string& host, const std::string& port) {
    const std::string bytes = std::string(48, 'x') + port + host;
    std::string sum;
    const std::string digits = core::sha256_hex(bytes).substr(0, 16);
    for (std::size_t i = 0; i < 16; i += 2) sum += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
    return "enlist1_" + core::base64url_encode(bytes + sum);
  };
  EXPECT_EQ(refusal(made("head", std::string("\x1a\xaf", 2))), "");
  EXPECT_NE(refusal(made("head", std::string(2, '\0'))), "");
  EXPECT_NE(refusal(made("", std::string("\x1a\xaf", 2))), "");
  EXPECT_NE(refusal(made("a b", std::string("\x1a\xaf", 2))), "");
  EXPECT_NE(refusal(made("a\nb", std::string("\x1a\xaf", 2))), "");
  EXPECT_NE(refusal(made(std::string(254, 'a'), std::string("\x1a\xaf", 2))), "");
}

TEST(Token, WritingAnythingElseIsABug) {
  EXPECT_THROW((void)write_token({"", 1, kKey, kSecret}), std::invalid_argument);
  EXPECT_THROW((void)write_token({"head", 0, kKey, kSecret}), std::invalid_argument);
  EXPECT_THROW((void)write_token({"head", 1, "abc", kSecret}), std::invalid_argument);
  EXPECT_THROW((void)write_token({"head", 1, kKey, std::string(32, 'X')}), std::invalid_argument);
}

TEST(Token, TheDigestIsOneWay) {
  EXPECT_EQ(digest_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace enlist
