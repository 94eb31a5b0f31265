#include "core/random.hpp"

#include <gtest/gtest.h>

namespace core {
namespace {

// The generator is OpenSSL's. Only our own code is tested.
TEST(SystemRandom, StaysBelowTheBound) {
  SystemRandom random;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_LT(random.below(3), 3U);
    ASSERT_EQ(random.below(1), 0U);
    const double unit = random.unit();
    ASSERT_GE(unit, 0.0);
    ASSERT_LT(unit, 1.0);
  }
  EXPECT_THROW(random.below(0), std::invalid_argument);
}

TEST(SystemRandom, GivesAsManyBytesAsAsked) {
  SystemRandom random;
  EXPECT_EQ(random.bytes(0), "");
  EXPECT_EQ(random.bytes(1024).size(), 1024U);
  EXPECT_NE(random.bytes(32), random.bytes(32));
}

TEST(SystemRandom, StreamsAreAsRandom) {
  SystemRandom random;
  EXPECT_NE(random.stream("a")->bytes(32), random.stream("a")->bytes(32));
}

}  // namespace
}  // namespace core
