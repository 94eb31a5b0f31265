#include "enlist/rules/text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace enlist {
namespace {

TEST(Text, ListsAndNumbersAreReadAsInSlurmConf) {
  EXPECT_THAT(list_items(" a, b,,c\t"), testing::ElementsAre("a", "b", "c"));
  EXPECT_THAT(list_items(""), testing::IsEmpty());
  EXPECT_EQ(comma_list({"a", "b"}), "a,b");
  EXPECT_EQ(whole_number("64"), 64U);
  EXPECT_EQ(whole_number("64k"), 65536U);
  for (const char* bad : {"", "k", "-1", "6 4", "0x1", "99999999999999999999", "99999999999999999K"})
    EXPECT_EQ(whole_number(bad), std::nullopt) << bad;
  EXPECT_TRUE(same_word("MaxNodeCount", "maxnodecounT"));
  EXPECT_FALSE(same_word("MaxNodeCount", "MaxNodeCoun"));
}

TEST(Text, AMessageShowsForeignTextOnOneShortLine) {
  EXPECT_EQ(shown("a\nb"), "a?b");
  EXPECT_EQ(shown(std::string(70, 'x')), std::string(60, 'x') + "...");
}

TEST(Text, ATimeHasAUnit) {
  EXPECT_EQ(parse_time("90s"), std::chrono::seconds(90));
  EXPECT_EQ(parse_time("2d"), std::chrono::hours(48));
  for (const char* text : {"", "1", "h", "-1h", "1w", "1h30m", "99999999d"}) EXPECT_FALSE(parse_time(text)) << text;
}

}  // namespace
}  // namespace enlist
