#include "bridge/nodes/taints.hpp"

#include <gtest/gtest.h>

namespace bridge::nodes {
namespace {

TEST(Taints, AReasonBecomesAValue) {
  EXPECT_EQ(taint_value(""), "");
  EXPECT_EQ(taint_value("maintenance"), "maintenance");
  EXPECT_EQ(taint_value("bad DIMM (see #7)"), "bad-DIMM-see-7");
  EXPECT_EQ(taint_value("  ..v1_2.. "), "v1_2");
  EXPECT_EQ(taint_value("--"), "");
  EXPECT_EQ(taint_value("\xc3\xa4x"), "x");
  EXPECT_EQ(taint_value(std::string(62, 'a') + " b").size(), 62U);
  EXPECT_EQ(taint_value(std::string(100, 'a')).size(), 63U);
}

}  // namespace
}  // namespace bridge::nodes
