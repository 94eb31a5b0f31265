// Runs the scenarios of tests/scenarios/token.
#include <gtest/gtest.h>

#include "operator/testing/scenario.hpp"
#include "operator/testing/scenario_runner.hpp"
#include "operator/token/observe.hpp"

namespace op::token {
namespace {

class TokenScenario : public ::testing::TestWithParam<std::string> {};

TEST_P(TokenScenario, Runs) {
  testing::run_scenario<TokenController>(GetParam(), "Token");
}

INSTANTIATE_TEST_SUITE_P(Scenarios, TokenScenario, ::testing::ValuesIn(testing::scenario_files({"token"})),
                         testing::scenario_name);

}  // namespace
}  // namespace op::token
