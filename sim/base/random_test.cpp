#include "sim/base/random.hpp"

#include <gtest/gtest.h>

namespace sim {
namespace {

TEST(SeededRandom, AStreamFollowsFromTheSeedAndItsName) {
  SeededRandom random(7), drawn(7);
  (void)drawn.bytes(100);
  const std::string bytes = random.stream("pods")->bytes(16);
  EXPECT_EQ(drawn.stream("pods")->bytes(16), bytes) << "whatever else was drawn";
  EXPECT_NE(random.stream("nodes")->bytes(16), bytes);
  EXPECT_NE(SeededRandom(8).stream("pods")->bytes(16), bytes);
}

}  // namespace
}  // namespace sim
