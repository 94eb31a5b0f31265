// Runs the scenarios of tests/scenarios. A scenario has a small world, events in it, and the changes that the controller should
// make. tests/scenarios/README.md describes the format.
//
//   RUN_SCENARIOS(restapi, RestApi);
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/object.hpp"
#include "operator/testing/scenario.hpp"
#include "operator/testing/world.hpp"
#include "plan/plan.hpp"

namespace op::testing {

/// Runs a scenario. Implements the actions and expectations that all folders share. Reports failures by GoogleTest assertions.
class ScenarioRunner {
 public:
  /// `kind` is the kind of the object whose conditions a scenario expects.
  explicit ScenarioRunner(std::string_view kind) : kind_(kind) {}
  virtual ~ScenarioRunner() = default;
  ScenarioRunner(const ScenarioRunner&) = delete;
  ScenarioRunner& operator=(const ScenarioRunner&) = delete;
  /// Throws std::invalid_argument for a key or value that the language does not have.
  void run_file(const std::string& file);

 protected:
  [[nodiscard]] virtual World& world() = 0;
  /// Reads the parts of the file other than its steps.
  virtual void begin(const Json& scenario);
  virtual void act(const std::string& verb, const Json& value);
  virtual void run(const Run& how);
  [[nodiscard]] virtual plan::Plan make_plan() = 0;
  virtual void expect(const std::string& what, const Json& want);

  /// Returns the key of an object in the namespace of the object whose plan is tested.
  [[nodiscard]] kube::Key named(const std::string& name) const { return {key_.ns, name}; }

  kube::Key key_{"default", "demo"};
  std::vector<std::string> did_;  ///< The plan's steps in this step of the scenario; failed ones with a "!".
  plan::Plan last_;

 private:
  [[nodiscard]] std::string offered();
  /// `what` is the type of a condition of the scenario's object, or "Kind/name type".
  [[nodiscard]] std::optional<std::string> condition_text(const std::string& what);
  void expect_object(const std::string& what, const Json& want);
  void expect_text(const std::string& where, const Json& want);

  const std::string kind_;
};

/// Runs scenarios of a controller whose world consists of documents only.
template <class Controller>
class DocumentsRunner final : public ScenarioRunner {
 public:
  using ScenarioRunner::ScenarioRunner;

 private:
  World& world() override { return world_; }
  plan::Plan make_plan() override { return world_.plan<Controller>(key_); }
  World world_;
};

}  // namespace op::testing

/// Defines tests that run the scenarios of tests/scenarios/FOLDER with the given ScenarioRunner.
#define RUN_SCENARIOS_WITH(folder, kind, ...)                                                                      \
  class kind##Scenario : public ::testing::TestWithParam<std::string> {};                                          \
  TEST_P(kind##Scenario, Runs) {                                                                                   \
    __VA_ARGS__(#kind).run_file(GetParam());                                                                       \
  }                                                                                                                \
  INSTANTIATE_TEST_SUITE_P(Scenarios, kind##Scenario, ::testing::ValuesIn(op::testing::scenario_files({#folder})), \
                           op::testing::scenario_name)
/// Defines tests that run the scenarios of tests/scenarios/FOLDER with op::FOLDER::KINDController.
#define RUN_SCENARIOS(folder, kind) RUN_SCENARIOS_WITH(folder, kind, op::testing::DocumentsRunner<op::folder::kind##Controller>)
