#include "core/hash.hpp"

#include <gtest/gtest.h>

namespace core {
namespace {

TEST(Hash, Sha256OfKnownTexts) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Hash, ShortHashIsStableAndSafe) {
  // The names of objects in clusters contain such hashes, so the hash of a text must never change.
  EXPECT_EQ(short_hash("abc", 10), "7q5dlcxxpp");
  EXPECT_EQ(short_hash("abc", 5), short_hash("abc", 10).substr(0, 5));
  EXPECT_NE(short_hash("abd", 10), short_hash("abc", 10));
  EXPECT_EQ(short_hash("abc", 32).size(), 32U);
  EXPECT_THROW(short_hash("abc", 33), std::invalid_argument);
}

TEST(Hash, CanonicalTextDoesNotDependOnOrder) {
  EXPECT_EQ(canonical(Json::parse(R"({"b": [1, 2], "a": {"d": null, "c": "x"}})")), R"({"a":{"c":"x","d":null},"b":[1,2]})");
  EXPECT_EQ(canonical(Json("\xff")), "\"\xef\xbf\xbd\"");
}

}  // namespace
}  // namespace core
