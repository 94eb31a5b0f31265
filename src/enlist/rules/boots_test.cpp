#include "enlist/rules/boots.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace enlist {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr core::MonoTime kStart{core::Duration{1'000'000}};

TEST(Boots, ABootIdThatComesBackIsThatOfAnotherHost) {
  Boots boots;
  EXPECT_TRUE(boots.empty());
  boots.heard("", "h1", kStart);
  EXPECT_TRUE(boots.empty()) << "an agent that does not know it";
  boots.heard("a", "h1", kStart);
  boots.heard("a", "h1", kStart + 1s);
  boots.heard("b", "h2", kStart + 2s);
  boots.heard("", "h1", kStart + 3s);
  EXPECT_THAT(boots.two_hosts(kStart + 3s), IsEmpty()) << "the host has booted";
  boots.heard("a", "h1", kStart + 4s);
  const std::string text = boots.two_hosts(kStart + 4s);
  EXPECT_THAT(text, HasSubstr("two hosts use the key of this node, as after a disk was copied: h1 (boot a) and h2 (boot b)."));
  boots.heard("b", "h2", kStart + 5s);
  EXPECT_EQ(boots.two_hosts(kStart + 6s), text) << "the same while nothing changes";
  EXPECT_EQ(boots.two_hosts(kStart + 5s + kTwoHostsFor - 1ms), text);
  EXPECT_THAT(boots.two_hosts(kStart + 5s + kTwoHostsFor), IsEmpty()) << "the copy is gone";
  boots.heard("b", "h2", kStart + 10min);
  EXPECT_THAT(boots.two_hosts(kStart + 10min), IsEmpty());
}

TEST(Boots, AHostMayBootOften) {
  Boots boots;
  for (int i = 0; i < 1000; ++i) boots.heard(std::to_string(i), "h1", kStart);
  EXPECT_THAT(boots.two_hosts(kStart), IsEmpty());
  boots.heard("990", "h1", kStart);
  EXPECT_THAT(boots.two_hosts(kStart), HasSubstr("h1 (boot 990) and h1 (boot 999)"));
}

}  // namespace
}  // namespace enlist
