#include "core/quantity.hpp"

#include <gtest/gtest.h>

namespace core {
namespace {

TEST(Quantity, KnowsDecimalAndBinarySuffixes) {
  EXPECT_EQ(quantity("2"), 2);
  EXPECT_EQ(quantity("100n"), 1e-7L);
  EXPECT_EQ(quantity("100u"), 1e-4L);
  EXPECT_EQ(quantity("500m"), 0.5L);
  EXPECT_EQ(quantity("2000m"), 2);
  EXPECT_EQ(quantity("1k"), 1000);
  EXPECT_EQ(quantity("1Ki"), 1024);
  EXPECT_EQ(quantity("1.5Gi"), 1610612736);
  EXPECT_EQ(quantity("3M"), 3000000);
  EXPECT_EQ(quantity("2E"), 2000000000000000000);
  EXPECT_EQ(quantity("1Ti"), 1099511627776);
}

TEST(Quantity, KnowsSignsFractionsAndExponents) {
  EXPECT_EQ(quantity("0"), 0);
  EXPECT_EQ(quantity(".5"), 0.5L);
  EXPECT_EQ(quantity("5."), 5);
  EXPECT_EQ(quantity("+1"), 1);
  EXPECT_EQ(quantity("-1.5k"), -1500);
  EXPECT_EQ(quantity("3e6"), 3000000);
  EXPECT_EQ(quantity("3E+6"), 3000000);
  EXPECT_EQ(quantity("1500e-3"), 1.5L);
}

TEST(Quantity, EqualOnesComeOutEqual) {
  EXPECT_EQ(quantity("0.1"), quantity("100m"));
  EXPECT_EQ(quantity("0.3"), quantity("300000u"));
  EXPECT_EQ(quantity("1024Mi"), quantity("1Gi"));
  EXPECT_EQ(quantity("1.1Gi"), quantity("1126.4Mi"));
  EXPECT_NE(quantity("1G"), quantity("1Gi"));
}

TEST(Quantity, RefusesWhatIsNone) {
  for (const char* text :
       {"",    ".",  "-",   "x",   "m",    "1 ",    " 1",    "1 Gi", "1ki", "1K",   "1B",    "1Kib", "1ni",
        "1mm", "1e", "1E-", "--1", "1e1k", "1e+-1", "1e100", "nan",  "inf", "0x10", "1.2.3", "1,5",  "1234567890123456789"})
    EXPECT_FALSE(quantity(text)) << text;
}

TEST(Quantity, ReadsJsonTextAndNumbers) {
  EXPECT_EQ(quantity(Json("4")), 4);
  EXPECT_EQ(quantity(Json(4)), 4);
  EXPECT_EQ(quantity(Json(0.5)), 0.5L);
  EXPECT_FALSE(quantity(Json::object()));
  EXPECT_FALSE(quantity(Json()));
}

}  // namespace
}  // namespace core
