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

TEST(ScenarioWords, OnlyAbsentIsSaidOfWhatIsNotThere) {
  EXPECT_TRUE(holds("(absent)", std::nullopt));
  for (const char* other : {"*", "", "(present)", "!x", "!*", "absent"}) EXPECT_FALSE(holds(other, std::nullopt)) << other;
  EXPECT_FALSE(holds("(absent)", "x"));
  EXPECT_FALSE(holds("(absent)", ""));
  EXPECT_TRUE(holds("(present)", ""));
  EXPECT_TRUE(holds("a*", "ab"));
  EXPECT_FALSE(holds("a*", "ba"));
  EXPECT_TRUE(holds("!a*", "ba"));
  EXPECT_FALSE(holds("!a*", "ab"));
}

TEST(ScenarioWords, RunSaysHowFar) {
  for (const Json& step : {Json::object(), Json{{"run", "settle"}}}) EXPECT_TRUE(run_of(step).must_rest);
  EXPECT_EQ(run_of({{"run", "once"}}).passes, 1);
  EXPECT_EQ(run_of({{"run", "none"}}).passes, 0);
  EXPECT_EQ(run_of({{"run", 3U}}).passes, 3);
  EXPECT_FALSE(run_of({{"run", 3U}}).must_rest);
}

TEST(ScenarioWords, UnknownOnesAreRefused) {
  EXPECT_EQ(code_of("Internal"), core::ErrorCode::kInternal);
  EXPECT_THROW(static_cast<void>(code_of("Forbiden")), std::invalid_argument);
  EXPECT_NO_THROW(check_keys({{"name", 1}}, {"name", "state"}));
  EXPECT_THROW(check_keys({{"name", 1}, {"stat", 2}}, {"name", "state"}), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(run_of({{"run", "twice"}})), std::invalid_argument);
  EXPECT_EQ(only_item({{"start", true}}).first, "start");
  EXPECT_THROW(static_cast<void>(only_item({{"start", true}, {"finish", true}})), std::invalid_argument);
}

}  // namespace
}  // namespace op::testing
