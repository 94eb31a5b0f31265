#include "core/percent.hpp"

#include <gtest/gtest.h>

namespace core {
namespace {

TEST(PercentEncode, KeepsOnlyUnreservedCharacters) {
  EXPECT_EQ(percent_encode("a=b,c in (x y)~-._"), "a%3Db%2Cc%20in%20%28x%20y%29~-._");
  EXPECT_EQ(percent_encode("A/?#%:\n\xC3\xA9"), "A%2F%3F%23%25%3A%0A%C3%A9");
}

TEST(PercentEncode, KeepsFurtherCharacters) {
  EXPECT_EQ(percent_encode("a:b/c", ":"), "a:b%2Fc");
}

}  // namespace
}  // namespace core
