#include "example/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/testing/observing.hpp"

namespace example {
namespace {

std::vector<std::string> steps_of(const core::Result<Contents>& contents) {
  const plan::Observing observing = plan::testing::Observer::at({});
  Observed observed{contents, {}};
  for (const auto& [name, text] : contents ? contents->files : Files{}) {
    if (auto evidence = Unlisted::of(observing, *contents, name)) observed.unlisted.emplace(name, *std::move(evidence));
  }
  const plan::Plan made = plan(observed);
  std::vector<std::string> out;
  for (const auto& [id, lane] : made.lanes()) {
    for (const auto& group : lane.groups()) {
      for (const plan::Step& step : group) out.push_back(step.id.text());
    }
  }
  return out;
}

TEST(ExamplePlan, WritesWhatIsListedAndRemovesWhatIsNot) {
  const std::string mark(kMark);
  EXPECT_THAT(steps_of(Contents{.list = {{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}},
                                .files = {{"b", mark + "2"}, {"c", mark + "0"}, {"d", "x"}, {"e", mark}, {"f", "y"}}}),
              testing::ElementsAre("remove File e", "create File a", "update File c"));
}

TEST(ExamplePlan, DoesNothingWhileNothingIsKnown) {
  EXPECT_THAT(steps_of(core::fail(core::ErrorCode::kUnavailable, "away")), testing::IsEmpty());
}

}  // namespace
}  // namespace example
