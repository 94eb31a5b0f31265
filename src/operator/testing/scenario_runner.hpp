// Runs the scenarios of tests/scenarios/{controller,loginset,restapi,token}: documents in, what the controller does about them
// out. tests/scenarios/README.md describes them.
//
//   TEST_P(Scenario, Runs) { run_scenario<RestApiController>(GetParam(), "RestApi"); }
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "kube/object.hpp"
#include "operator/testing/world.hpp"
#include "plan/plan.hpp"

namespace op::testing {

using MakePlan = std::function<plan::Plan(World&, const kube::Key&)>;

/// Assertions of GoogleTest tell what does not hold. `kind` is that of the object whose conditions a scenario means. Throws
/// std::invalid_argument for a word that it does not know.
void run_scenario(const std::string& file, std::string_view kind, const MakePlan& make_plan);

template <class Controller>
void run_scenario(const std::string& file, std::string_view kind) {
  run_scenario(file, kind, [](World& world, const kube::Key& key) { return world.plan<Controller>(key); });
}

}  // namespace op::testing
