// Runs the scenarios of tests/scenarios/restapi.
#include <gtest/gtest.h>

#include "operator/restapi/observe.hpp"
#include "operator/testing/scenario.hpp"
#include "operator/testing/scenario_runner.hpp"

namespace op::restapi {
namespace {

class RestApiScenario : public ::testing::TestWithParam<std::string> {};

TEST_P(RestApiScenario, Runs) {
  testing::run_scenario<RestApiController>(GetParam(), "RestApi");
}

INSTANTIATE_TEST_SUITE_P(Scenarios, RestApiScenario, ::testing::ValuesIn(testing::scenario_files({"restapi"})),
                         testing::scenario_name);

}  // namespace
}  // namespace op::restapi
