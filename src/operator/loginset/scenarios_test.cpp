// Runs the scenarios of tests/scenarios/loginset.
#include <gtest/gtest.h>

#include "operator/loginset/observe.hpp"
#include "operator/testing/scenario.hpp"
#include "operator/testing/scenario_runner.hpp"

namespace op::loginset {
namespace {

class LoginSetScenario : public ::testing::TestWithParam<std::string> {};

TEST_P(LoginSetScenario, Runs) {
  testing::run_scenario<LoginSetController>(GetParam(), "LoginSet");
}

INSTANTIATE_TEST_SUITE_P(Scenarios, LoginSetScenario, ::testing::ValuesIn(testing::scenario_files({"loginset"})),
                         testing::scenario_name);

}  // namespace
}  // namespace op::loginset
