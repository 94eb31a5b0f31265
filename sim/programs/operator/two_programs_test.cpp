// Two programs in one world, and one history of both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/histories/history.hpp"
#include "sim/programs/example/program.hpp"
#include "sim/programs/operator/program.hpp"

namespace sim {
namespace {

TEST(TwoPrograms, ShareAWorldAndAHistory) {
  std::vector<std::unique_ptr<Program>> programs;
  programs.push_back(std::make_unique<OperatorProgram>());
  programs.push_back(std::make_unique<ExampleProgram>());
  const auto& example = static_cast<const ExampleProgram&>(*programs.back());
  World world({.seed = 1}, std::move(programs));
  EXPECT_THAT(History(world).run(), testing::IsEmpty());
  EXPECT_THAT(example.starts(), testing::Ge(1));
}

}  // namespace
}  // namespace sim
