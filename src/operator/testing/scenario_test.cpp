#include "operator/testing/scenario.hpp"

#include <gtest/gtest.h>

namespace op::testing {
namespace {

using core::Json;

TEST(ScenarioWords, AreReadAsJsonReadsThem) {
  const Json read = from_yaml(YAML::Load("{a: [-1, 1.5, true, no, '2', null], b: {c: 1Gi}}"));
  EXPECT_EQ(read, (Json{{"a", {-1, 1.5, true, "no", "2", nullptr}}, {"b", {{"c", "1Gi"}}}}));
}

TEST(ScenarioWords, AStarStandsForAnything) {
  EXPECT_TRUE(matches("a*c", "abc"));
  EXPECT_TRUE(matches("a*c*", "acbc"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_FALSE(matches("", "a"));
  EXPECT_FALSE(matches("a*c", "abcd"));
  EXPECT_FALSE(matches("b*", "ab"));
}

TEST(ScenarioWords, UnknownOnesAreRefused) {
  EXPECT_EQ(code_of("Internal"), core::ErrorCode::kInternal);
  EXPECT_THROW(static_cast<void>(code_of("Forbiden")), std::invalid_argument);
  EXPECT_NO_THROW(check_keys({{"name", 1}}, {"name", "state"}));
  EXPECT_THROW(check_keys({{"name", 1}, {"stat", 2}}, {"name", "state"}), std::invalid_argument);
  EXPECT_EQ(only_item({{"start", true}}).first, "start");
  EXPECT_THROW(static_cast<void>(only_item({{"start", true}, {"finish", true}})), std::invalid_argument);
}

}  // namespace
}  // namespace op::testing
