// Runs the scenarios of tests/scenarios/accounting.
#include <gtest/gtest.h>

#include "operator/accounting/observe.hpp"
#include "operator/testing/scenario.hpp"
#include "operator/testing/scenario_runner.hpp"

namespace op::accounting {
namespace {

class AccountingScenario : public ::testing::TestWithParam<std::string> {};

TEST_P(AccountingScenario, Runs) {
  testing::run_scenario<AccountingController>(GetParam(), "Accounting");
}

INSTANTIATE_TEST_SUITE_P(Scenarios, AccountingScenario, ::testing::ValuesIn(testing::scenario_files({"accounting"})),
                         testing::scenario_name);

}  // namespace
}  // namespace op::accounting
