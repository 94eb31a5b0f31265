#include "sim/programs/enlist/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "sim/histories/trials.hpp"

namespace sim {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

/// A world with slurm-enlist alone.
struct EnlistWorld : World {
  explicit EnlistWorld(std::uint64_t seed)
      : World({.seed = seed, .kube_nodes = 1, .print = std::getenv("SIM_PRINT") != nullptr}, only()) {}
  static std::vector<std::unique_ptr<Program>> only() {
    std::vector<std::unique_ptr<Program>> out;
    out.push_back(std::make_unique<EnlistProgram>());
    return out;
  }
  EnlistProgram& program() { return static_cast<EnlistProgram&>(*programs().front()); }
  SimSlurm& slurm() { return program().slurm(); }
  EnlistHost& host(std::size_t index) { return *program().hosts()[index]; }
};

/// Returns the latest events, for the report of a failing seed.
std::string notes_of(World& world) {
  std::string out;
  for (const std::string& note : world.oracles().notes()) out += "\n  " + note;
  return out;
}

/// Reports whether to run the long tests (make test-long): more histories, and each fault at each write.
bool runs_whole() {
  return std::getenv("SIM_WHOLE") != nullptr;
}

TEST(EnlistProgram, KeepsItsPromisesInEveryHistory) {
  const char* one = std::getenv("SIM_SEED");
  const std::uint64_t first = one == nullptr ? 1 : std::stoull(one), last = one != nullptr ? first : runs_whole() ? 200 : 4;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    EnlistWorld world(seed);
    EXPECT_THAT(History(world).run(), IsEmpty()) << "seed " << seed << notes_of(world);
  }
}

/// Calls `act` until it returns true, every five seconds and 30 times at most.
void insist(EnlistWorld& world, const std::function<bool()>& act) {
  for (int attempt = 0; attempt < 30; ++attempt) {
    if (act()) return;
    world.loop().run_for(5s);
  }
  ADD_FAILURE() << "it does not succeed" << notes_of(world);
}

void join(EnlistWorld& world, EnlistHost& host) {
  world.program().oracle().wants(host, "cpu");
  insist(world, [&] {
    const std::string token = world.program().make_token(world, "cpu", 1);
    return !token.empty() && world.program().join(world, host, token, true) == 0;
  });
}

/// Two hosts join. One host reboots with another hostname, and then slurmctld loses its state.
void two_hosts(EnlistWorld& world) {
  world.start(world.program());
  world.loop().run_for(5s);
  insist(world, [&] { return world.program().make_pool(world, "cpu", ""); });
  join(world, world.host(0));
  join(world, world.host(1));
  EXPECT_THAT(world.settle(10min), IsEmpty()) << notes_of(world);
  EXPECT_NE(world.slurm().submit({.partition = "cpu", .duration = 40s}), 0);
  world.host(0).hostname = "another";
  world.host(0).power_cycle(10s);
  EXPECT_THAT(world.settle(10min), IsEmpty()) << notes_of(world);
  world.slurm().stop();
  world.slurm().lose_state();
  (void)world.slurm().start();
  EXPECT_THAT(world.settle(10min), IsEmpty()) << notes_of(world);
}

TEST(EnlistProgram, EndsAsWithoutTheFaultAtSomeWrites) {
  EnlistWorld plain(7);
  two_hosts(plain);
  EXPECT_THAT(plain.oracles().violations(), IsEmpty());
  const std::uint64_t faulty = plain.faults().writes(), step = runs_whole() ? 1 : faulty;
  EXPECT_GE(faulty, 40U);
  plain.loop().run_for(1min);
  const std::uint64_t writes = plain.program().oracle().writes();
  plain.loop().run_for(10min);
  EXPECT_EQ(plain.program().oracle().writes(), writes) << plain.program().oracle().last_write();
  std::uint64_t number = 0;
  for (const Trial& trial : all_trials()) {
    if (trial.processes != 1 || (++number % 4 != 0 && !runs_whole())) continue;
    // Each fault begins at a different write, so that all faults together cover all writes.
    for (std::uint64_t write = number * 7 % step; write < faulty; write += step) {
      SCOPED_TRACE(trial.name + " at write " + std::to_string(write));
      EnlistWorld world(7);
      trial.arm(world, write);
      two_hosts(world);
      EXPECT_THAT(world.oracles().violations(), IsEmpty()) << notes_of(world);
    }
  }
}

TEST(EnlistProgram, TheOracleSeesWhatAWrongProgramWouldDo) {
  EnlistWorld world(1);
  world.start(world.program());
  world.loop().run_for(5s);
  insist(world, [&] { return world.program().make_pool(world, "cpu", ""); });
  join(world, world.host(0));
  ASSERT_THAT(world.settle(10min), IsEmpty());
  const std::string node = world.host(0).node();
  const auto update = [&](const char* state, const char* user) {
    world.loop().run_for(1s);
    (void)world.slurm().update_node(node, {.state = state, .reason = "why"}, user);
  };
  world.slurm().submit({.partition = "cpu", .duration = 10min});
  world.loop().run_for(2s);
  update("DRAIN", "admin");
  world.loop().run_for(1s);
  world.program().oracle().request({.method = "GET", .target = "/slurm/v0.0.45/node/" + node});
  update("UNDRAIN", EnlistOracle::kOurs);
  EXPECT_THAT(world.oracles().violations(), testing::ElementsAre(HasSubstr("which it does not hold")));
  update("DOWN", EnlistOracle::kOurs);
  EXPECT_THAT(world.oracles().violations(), Contains(HasSubstr("sets " + node + " DOWN")));
  EXPECT_THAT(world.oracles().violations(), Contains(HasSubstr("job 1 is")));
  (void)world.slurm().delete_node(node, EnlistOracle::kOurs);
  EXPECT_THAT(world.oracles().violations(), Contains(HasSubstr("deletes the record")));
  world.host(1).check_passes = false;
  join(world, world.host(1));
  world.loop().run_for(30s);
  (void)world.slurm().update_node(world.host(1).node(), {.state = "UNDRAIN"}, EnlistOracle::kOurs);
  EXPECT_THAT(world.oracles().violations(), Contains(HasSubstr("before the check has passed")));
  (void)world.host(1).run({"systemctl", "restart", "slurmd.service"}, 1s, "");
  EXPECT_THAT(world.oracles().violations(), Contains(HasSubstr("restarts a slurmd that runs")));
  world.oracles().log_line("the key is " + world.host(0).auth_key());
  EXPECT_THAT(world.oracles().violations(), Contains(HasSubstr("a secret is in a log")));
  (void)world.slurm().create_nodes("NodeName=stranger CPUs=4 RealMemory=1000 State=External");
  EXPECT_THAT(world.oracles().unmet(), Contains(HasSubstr("stranger has no owner")));
}

}  // namespace
}  // namespace sim
