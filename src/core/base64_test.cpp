#include "core/base64.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace core {
namespace {

TEST(Base64, KnownTexts) {  // RFC 4648, section 10
  EXPECT_EQ(base64_encode(""), "");
  EXPECT_EQ(base64_encode("f"), "Zg==");
  EXPECT_EQ(base64_encode("fo"), "Zm8=");
  EXPECT_EQ(base64_encode("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64url_encode("\xfb\xff\xfe"), "-__-");
  EXPECT_EQ(base64url_encode("f"), "Zg");
  EXPECT_EQ(*base64_decode("Zm9v\nYmE=\n"), "fooba");
}

TEST(Base64, RefusesWhatIsMalformed) {
  for (const char* text : {"Zg", "Zg=", "Z===", "====", "Zg==Zg==", "Z*==", "-__-"}) EXPECT_FALSE(base64_decode(text)) << text;
}

RC_GTEST_PROP(Base64, RoundTrip, (const std::string& bytes)) {
  RC_ASSERT(*base64_decode(base64_encode(bytes)) == bytes);
}

}  // namespace
}  // namespace core
