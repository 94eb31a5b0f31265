// Tests histories of the smallest program, the example. This file shows everything that a history needs.
#include "sim/histories/history.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/programs/example/program.hpp"

namespace sim {
namespace {

using testing::ElementsAre;
using testing::Gt;
using testing::IsEmpty;

struct Jumps final : Oracle {
  void clock_jumps(core::Duration) override { ++count; }
  int count = 0;
};

struct Outcome {
  std::vector<std::string> wrong;
  std::uint64_t steps = 0, writes = 0;
  int starts = 0, jumps = 0;
  bool operator==(const Outcome&) const = default;
};

Outcome run(std::uint64_t seed) {
  std::vector<std::unique_ptr<Program>> programs;
  programs.push_back(std::make_unique<ExampleProgram>());
  const auto& program = static_cast<const ExampleProgram&>(*programs.front());
  World world({.seed = seed}, std::move(programs));
  Jumps jumps;
  world.oracles().add(jumps);
  std::vector<std::string> wrong = History(world).run();
  return {std::move(wrong), world.loop().steps(), world.faults().writes(), program.starts(), jumps.count};
}

TEST(History, AProgramIsFoundedHarmedAndLeftInPeace) {
  Outcome sum;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Outcome out = run(seed);
    EXPECT_THAT(out.wrong, IsEmpty());
    EXPECT_THAT(out.writes, Gt(2)) << "its users do something";
    sum.starts += out.starts;
    sum.jumps += out.jumps;
  }
  EXPECT_THAT(sum.starts, Gt(10)) << "some crashed, and came back";
  EXPECT_THAT(sum.jumps, Gt(0));
}

TEST(History, OneSeedIsOneHistory) {
  EXPECT_EQ(run(3), run(3));
}

TEST(History, WhatAnOracleSaysEndsIt) {
  struct Strict final : Program {
    std::string name() const override { return "strict"; }
    void install(World& world) override { world.oracles().violation("no"); }
    std::unique_ptr<ProgramProcess> start(World&, int, int) override { return nullptr; }
    std::unique_ptr<Workload> workload(World&, History&) override {
      struct Nothing final : Workload {
        void found() override {}
        std::vector<Action> actions() override { return {}; }
        std::vector<std::string> calm() override { return {"is not reached"}; }
      };
      return std::make_unique<Nothing>();
    }
  };
  std::vector<std::unique_ptr<Program>> programs;
  programs.push_back(std::make_unique<Strict>());
  World world({.seed = 1}, std::move(programs));
  EXPECT_THAT(History(world).run(), ElementsAre("no"));
}

}  // namespace
}  // namespace sim
