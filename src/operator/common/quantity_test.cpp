#include "operator/common/quantity.hpp"

#include <gtest/gtest.h>

namespace op {
namespace {

TEST(Quantity, RoundsUpToWholeUnits) {
  EXPECT_EQ(quantity("2"), 2);
  EXPECT_EQ(quantity("500m"), 1);
  EXPECT_EQ(quantity("1500m"), 2);
  EXPECT_EQ(quantity("2000m"), 2);
  EXPECT_EQ(quantity("0.1"), 1);
  EXPECT_EQ(quantity("0"), 0);
  EXPECT_EQ(quantity("100n"), 1);
}

TEST(Quantity, KnowsDecimalAndBinarySuffixes) {
  EXPECT_EQ(quantity("1k"), 1000);
  EXPECT_EQ(quantity("1Ki"), 1024);
  EXPECT_EQ(quantity("1.5Gi"), 1610612736);
  EXPECT_EQ(quantity("3M"), 3000000);
  EXPECT_EQ(quantity("3e6"), 3000000);
  EXPECT_EQ(quantity("2E"), 2000000000000000000);
  EXPECT_EQ(quantity("1Ti"), 1099511627776);
}

TEST(Quantity, RefusesWhatIsNone) {
  for (const char* text : {"", "x", "1 Gi", "1ki", "1B", "-1", "1Kib", "nan", "inf", "100E"})
    EXPECT_FALSE(quantity(text)) << text;
}

TEST(Quantity, ReadsJsonStringsAndNumbers) {
  EXPECT_EQ(quantity_of(core::Json("4")), 4);
  EXPECT_EQ(quantity_of(core::Json(4)), 4);
  EXPECT_EQ(quantity_of(core::Json(0.5)), 1);
  EXPECT_FALSE(quantity_of(core::Json::object()));
}

}  // namespace
}  // namespace op
