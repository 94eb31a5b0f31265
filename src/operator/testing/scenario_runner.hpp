// Runs the scenarios of tests/scenarios/{controller,loginset,restapi,token}: documents in, the controller's changes out.
// tests/scenarios/README.md describes them.
//
//   RUN_SCENARIOS(restapi, RestApi);
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>

#include "kube/object.hpp"
#include "operator/testing/scenario.hpp"
#include "operator/testing/world.hpp"
#include "plan/plan.hpp"

namespace op::testing {

using MakePlan = std::function<plan::Plan(World&, const kube::Key&)>;

/// Failures are reported by GoogleTest assertions. `kind`: of the object whose conditions a scenario means. Throws
/// std::invalid_argument for an unknown word.
void run_scenario(const std::string& file, std::string_view kind, const MakePlan& make_plan);

template <class Controller>
void run_scenario(const std::string& file, std::string_view kind) {
  run_scenario(file, kind, [](World& world, const kube::Key& key) { return world.plan<Controller>(key); });
}

}  // namespace op::testing

/// Defines tests that run the scenarios of tests/scenarios/FOLDER with op::FOLDER::KINDController.
#define RUN_SCENARIOS(folder, kind)                                                                                \
  class kind##Scenario : public ::testing::TestWithParam<std::string> {};                                          \
  TEST_P(kind##Scenario, Runs) {                                                                                   \
    op::testing::run_scenario<op::folder::kind##Controller>(GetParam(), #kind);                                    \
  }                                                                                                                \
  INSTANTIATE_TEST_SUITE_P(Scenarios, kind##Scenario, ::testing::ValuesIn(op::testing::scenario_files({#folder})), \
                           op::testing::scenario_name)
