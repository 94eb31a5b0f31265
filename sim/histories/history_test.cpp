// A history with a program of its own: all that the simulator has to be told of one.
#include "sim/histories/history.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sim {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::Gt;
using testing::IsEmpty;

/// Counts seconds, in memory that outlives it.
struct Counter final : ProgramProcess {
  Counter(World& world, int& seconds) : host_(world.loop()), seconds_(seconds) { tick(); }
  SimHost& host() override { return host_; }
  void tick() {
    ++seconds_;
    host_.after(1s, [this] { tick(); });
  }
  SimHost host_;
  int& seconds_;
};

struct CounterProgram final : Program, Oracle {
  struct Work final : Workload {
    Work(World& w, CounterProgram& p) : world(w), program(p) {}
    void found() override { world.start(program); }
    std::vector<Action> actions() override {
      return {{20, [this] { ++program.acts; }}};
    }
    std::vector<std::string> calm() override {
      program.wanted = program.seconds + 10;
      return world.settle(1min);
    }
    World& world;
    CounterProgram& program;
  };

  std::string name() const override { return "counter"; }
  int processes() const override { return 2; }
  void install(World& world) override { world.oracles().add(*this); }
  std::unique_ptr<ProgramProcess> start(World& world, int, int) override {
    ++starts;
    return std::make_unique<Counter>(world, seconds);
  }
  std::unique_ptr<Workload> workload(World& world, History&) override { return std::make_unique<Work>(world, *this); }

  std::vector<std::string> unmet() const override {
    if (seconds < wanted) return {"it has not counted so far"};
    return {};
  }
  void clock_jumps(core::Duration) override { ++jumps; }

  int seconds = 0, wanted = 0, acts = 0, starts = 0, jumps = 0;
};

struct Outcome {
  std::vector<std::string> wrong;
  int seconds = 0, acts = 0, starts = 0, jumps = 0;
  bool operator==(const Outcome&) const = default;
};

Outcome run(std::uint64_t seed) {
  std::vector<std::unique_ptr<Program>> programs;
  programs.push_back(std::make_unique<CounterProgram>());
  const auto& counter = static_cast<const CounterProgram&>(*programs.front());
  World world({.seed = seed}, std::move(programs));
  std::vector<std::string> wrong = History(world).run();
  return {std::move(wrong), counter.seconds, counter.acts, counter.starts, counter.jumps};
}

TEST(History, AProgramIsFoundedHarmedAndLeftInPeace) {
  Outcome sum;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Outcome out = run(seed);
    EXPECT_THAT(out.wrong, IsEmpty());
    EXPECT_THAT(out.seconds, Gt(60));
    sum.acts += out.acts;
    sum.starts += out.starts;
    sum.jumps += out.jumps;
  }
  EXPECT_THAT(sum.acts, Gt(0));
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
