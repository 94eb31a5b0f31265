#include "kube/label_selector.hpp"

#include <gtest/gtest.h>

namespace kube {
namespace {

TEST(MatchesLabelsTest, ReadsWhatTheApiReads) {
  const StringMap labels = {{"a", "1"}, {"b", "2"}};
  EXPECT_TRUE(matches_labels("", labels));
  EXPECT_TRUE(matches_labels("a=1,b==2", labels));
  EXPECT_TRUE(matches_labels("a in (0, 1),b notin (1,3),a,!c,b!=3,c!=1,c notin (x)", labels));
  EXPECT_FALSE(matches_labels("a=2", labels));
  EXPECT_FALSE(matches_labels("c", labels));
  EXPECT_FALSE(matches_labels("!a", labels));
  EXPECT_FALSE(matches_labels("a!=1", labels));
  EXPECT_FALSE(matches_labels("a in (2,3)", labels));
  EXPECT_FALSE(matches_labels("a notin (1)", labels));
  EXPECT_FALSE(matches_labels("a in 1", labels)) << "what cannot be read does not match";
}

}  // namespace
}  // namespace kube
