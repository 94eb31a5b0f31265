// Runs the scenarios of tests/scenarios/controller.
#include <gtest/gtest.h>

#include "operator/controller/observe.hpp"
#include "operator/testing/scenario.hpp"
#include "operator/testing/scenario_runner.hpp"

namespace op::controller {
namespace {

class ControllerScenario : public ::testing::TestWithParam<std::string> {};

TEST_P(ControllerScenario, Runs) {
  testing::run_scenario<ControllerController>(GetParam(), "Controller");
}

INSTANTIATE_TEST_SUITE_P(Scenarios, ControllerScenario, ::testing::ValuesIn(testing::scenario_files({"controller"})),
                         testing::scenario_name);

}  // namespace
}  // namespace op::controller
