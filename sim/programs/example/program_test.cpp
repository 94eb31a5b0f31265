#include "sim/programs/example/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/histories/trials.hpp"

namespace sim {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

/// A world with the example program alone.
struct ExampleWorld : World {
  explicit ExampleWorld(std::uint64_t seed) : World({.seed = seed}, only()) {}
  static std::vector<std::unique_ptr<Program>> only() {
    std::vector<std::unique_ptr<Program>> out;
    out.push_back(std::make_unique<ExampleProgram>());
    return out;
  }
  ExampleProgram& program() { return static_cast<ExampleProgram&>(*programs().front()); }
  FolderOracle& oracle() { return program().oracle(); }
};

TEST(ExampleProgram, KeepsItsPromisesInEveryHistory) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    ExampleWorld world(seed);
    EXPECT_THAT(History(world).run(), IsEmpty()) << "seed " << seed;
  }
}

TEST(ExampleProgram, EndsAsWithoutTheFaultAtEachWrite) {
  constexpr std::uint64_t kWrites = 5;
  for (const Trial& trial : all_trials()) {
    for (std::uint64_t write = 0; write < kWrites; ++write) {
      ExampleWorld world(7);
      if (trial.processes == 1) trial.arm(world, write);
      world.oracle().disk = {.list = {{"a", "1"}, {"b", "2"}, {"c", "3"}}, .files = {{"c", "somebody else's"}}};
      world.start(world.program());
      EXPECT_THAT(world.settle(1min), IsEmpty());
      world.oracle().disk.list = {{"a", "4"}};
      EXPECT_THAT(world.settle(1min), IsEmpty()) << trial.name << " at write " << write;
      EXPECT_THAT(world.oracles().violations(), IsEmpty()) << trial.name << " at write " << write;
      EXPECT_EQ(world.oracle().disk.files["c"], "somebody else's");
      EXPECT_GE(world.faults().writes(), kWrites - 1);
    }
  }
}

TEST(ExampleProgram, NothingIsWrittenAtRestOrWhileTheListCannotBeRead) {
  ExampleWorld world(1);
  world.oracle().disk.list = {{"a", "1"}};
  world.start(world.program());
  ASSERT_THAT(world.settle(1min), IsEmpty());
  world.loop().run_for(1h);
  EXPECT_EQ(world.faults().writes(), 1U);
  world.oracle().readable = false;
  world.oracle().disk.list.clear();
  world.loop().run_for(1h);
  EXPECT_EQ(world.faults().writes(), 1U);
}

TEST(ExampleProgram, TheOracleSeesWhatAWrongProgramWouldDo) {
  ExampleWorld world(1);
  world.oracle().disk = {.list = {{"a", "1"}}, .files = {{"a", "somebody else's"}}};
  const auto disk = world.program().disk(world, 0);
  ASSERT_TRUE(disk->write("a", "x").has_value());
  world.oracle().readable = false;
  ASSERT_TRUE(disk->remove("a").has_value());
  EXPECT_THAT(world.oracles().violations(),
              ElementsAre(testing::HasSubstr("overwritten"), testing::HasSubstr("somebody else's"),
                          testing::HasSubstr("cannot be read"), testing::HasSubstr("listed")));
}

}  // namespace
}  // namespace sim
