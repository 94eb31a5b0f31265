#include "slurm/rest/release.hpp"

#include <gtest/gtest.h>

namespace slurm {
namespace {

TEST(Release, ReadsThreeNumbers) {
  EXPECT_EQ(parse_release("26.05.5"), (Release{26, 5, 5}));
  EXPECT_EQ(parse_release("slurm-wlm 24.11.5-1"), (Release{24, 11, 5}));
  EXPECT_EQ(parse_release("25.11.8-0pre1"), (Release{25, 11, 8}));
  EXPECT_EQ(parse_release("26.11"), (Release{26, 11, 0}));
  EXPECT_EQ(parse_release(""), (Release{}));
  EXPECT_EQ(parse_release("none"), (Release{}));
}

TEST(Release, Orders) {
  EXPECT_LT(parse_release("26.05.2"), parse_release("26.05.3"));
  EXPECT_LT(parse_release("25.11.9"), parse_release("26.05.0"));
  EXPECT_LT(parse_release("9.99"), parse_release("23.11"));
}

}  // namespace
}  // namespace slurm
