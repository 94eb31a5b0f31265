#include "sim/oracles/secrets.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base64.hpp"
#include "sim/programs/operator/oracles/testing/oracles_test.hpp"
#include "slinky/names.hpp"

namespace sim {
namespace {

using core::Json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace kinds = kube::resources;

TEST_F(OraclesTest, ASecretInAPlanIsFound) {
  const Json* secret = world.find(kinds::kSecret, slinky::generated_jwt_key_name(World::kCluster));
  ASSERT_NE(secret, nullptr);
  const std::string key = secret->at("data").begin()->get<std::string>();
  world.judges().read_plan(plan_of(kinds::kConfigMap, config_map_json("a", {{"b", "nothing"}})));
  EXPECT_THAT(violations(), IsEmpty());
  world.judges().read_plan(plan_of(kinds::kConfigMap, config_map_json("a", {{"b", "it is " + key}})));
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("a secret shows in a plan")));
}

TEST_F(OraclesTest, SoAreItsBytesAndTheURLsAlphabet) {
  std::string key;
  for (int i = 0; i < 32; ++i) key += static_cast<char>(250 - 7 * i);
  world.apply(secret_json("drawn", {{"key", key}}));
  world.judges().read_plan(plan_of(kinds::kConfigMap, config_map_json("a", {{"b", "it is " + key}})));
  EXPECT_EQ(violations().size(), 1U);
  world.oracles().log_line("it is " + core::base64url_encode(key));
  EXPECT_EQ(violations().size(), 2U);
}

TEST_F(OraclesTest, SoIsOneThatThePlanItselfMakes) {
  const Json made = secret_json("made", {{"key", "drawn in the middle of a plan"}});
  world.judges().read_plan(plan_of(kinds::kSecret, made));
  EXPECT_THAT(violations(), IsEmpty());
  world.apply(made);
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("a secret shows in a plan")));
}

}  // namespace
}  // namespace sim
