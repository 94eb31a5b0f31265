#include "enlist/rules/key_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base64.hpp"
#include "core/json.hpp"

namespace enlist {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kA(32, 'a'), kB(32, 'b');

core::Json entry(const std::string& kid, const std::string& key, const std::string& use = "") {
  core::Json out{{"alg", "HS256"}, {"kty", "oct"}, {"kid", kid}, {"k", core::base64_encode(key)}};
  if (!use.empty()) out["use"] = use;
  return out;
}
std::string jwks(const std::vector<core::Json>& keys) {
  return core::Json{{"keys", keys}}.dump();
}
KeySet read(const std::string& text) {
  return key_set_of("slurm.jwks", "r", text).value();
}

TEST(AuthKeys, TheDefaultKeySignsOrElseTheFirst) {
  EXPECT_EQ(read(jwks({entry("a", kA), entry("b", kB)})).signer, "a");
  EXPECT_EQ(read(jwks({entry("a", kA), entry("b", kB, "DEFAULT")})).signer, "b");
  EXPECT_EQ(read(jwks({entry("a", kA, "sig"), entry("b", kB)})).signer, "a");
}

TEST(AuthKeys, KeysAreToldApartByTheirContentAndNotShown) {
  const KeySet one = read(jwks({entry("a", kA)})), other = read(jwks({entry("a", kB)}));
  EXPECT_NE(one.keys, other.keys);
  EXPECT_TRUE(has_keys(one, one.keys, "a"));
  EXPECT_FALSE(has_keys(other, one.keys, "a"));
  EXPECT_TRUE(has_keys(other, {{"a", ""}}, "a")) << "any key with the kid";
  EXPECT_FALSE(has_keys(one, one.keys, "b"));
  EXPECT_THAT(one.keys.front().print, Not(HasSubstr("aaaa")));
}

TEST(AuthKeys, TheAlphabetOfUrlsIsTheSameKey) {
  const std::string key = std::string(30, '\xff') + std::string(3, '\xfb');
  core::Json url = entry("a", key);
  url["k"] = core::base64url_encode(key);
  EXPECT_EQ(read(jwks({entry("a", key)})).keys, read(jwks({url})).keys);
}

TEST(AuthKeys, WhatSlurmRefusesIsRefusedWithoutItsContent) {
  for (const std::string& bad :
       {std::string("{"), std::string("{}"), jwks({}), jwks({entry("", kA)}), jwks({entry("a", kA), entry("a", kB)}),
        jwks({entry("a", "secret")}), jwks({entry("a", kA, "default"), entry("b", kB, "default")})}) {
    const auto set = key_set_of("slurm.jwks", "r", bad);
    ASSERT_FALSE(set) << bad;
    EXPECT_THAT(set.error().message, Not(HasSubstr("secret")));
  }
  EXPECT_THAT(key_set_of("slurm.key", "r", kA).error().message, HasSubstr("move it to slurm.jwks"));
}

TEST(AuthKeys, AChangeKeepsWhatEntriesHave) {
  core::Json a = entry("a", kA, "default");
  a["exp"] = 99;
  const std::string both = changed_keys(jwks({a}), {.kids = {"a", "b"}, .signer = "a", .fresh_kid = "b"}, kB).value();
  EXPECT_EQ(core::parse_json(both)->at("keys")[0], a);
  const std::string switched = changed_keys(both, {.kids = {"a", "b"}, .signer = "b"}, "").value();
  EXPECT_EQ(read(switched).signer, "b");
  EXPECT_EQ(core::parse_json(switched)->at("keys")[0]["exp"], 99);
  EXPECT_EQ(changed_keys(switched, {.kids = {"a", "b"}, .signer = "a"}, "").value(), both) << "and back";
  const std::string alone = changed_keys(switched, {.kids = {"b"}, .signer = "b"}, "").value();
  EXPECT_TRUE(has_keys(read(alone), {read(switched).keys[1]}, "b"));
  EXPECT_FALSE(changed_keys(alone, {.kids = {"a", "b"}, .signer = "a"}, kB)) << "a key that is lost is not made up";
}

}  // namespace
}  // namespace enlist
