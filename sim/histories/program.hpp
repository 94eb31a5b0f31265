// A program in a world: all that the simulator has to know of it. World, History and Oracles know none by name; each program
// has a folder in sim/programs, with its processes, its workload and its oracles.
//
//   std::vector<std::unique_ptr<sim::Program>> programs;
//   programs.push_back(std::make_unique<sim::OperatorProgram>());
//   sim::World world({.seed = 7}, std::move(programs));
//   std::vector<std::string> wrong = sim::History(world).run();
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/loop.hpp"

namespace sim {

class History;
class World;

/// One process of a program, on a host of its own. Destroying it is a crash.
class ProgramProcess {
 public:
  virtual ~ProgramProcess() = default;
  [[nodiscard]] virtual SimHost& host() = 0;
  /// Of several, the one that acts.
  [[nodiscard]] virtual bool leads() const { return true; }
};

/// What a history does to a program, and what its users do; all of it drawn from the history's seed.
class Workload {
 public:
  struct Action {
    int weight;
    std::function<void()> act;
  };
  virtual ~Workload() = default;
  /// Makes what the program works on, and starts its processes.
  virtual void found() = 0;
  /// What may happen in the storm, beside the accidents that befall any world.
  [[nodiscard]] virtual std::vector<Action> actions() = 0;
  /// After each act of the storm: what is drawn by itself.
  virtual void act_apart() {}
  /// Before the next one, when some time has passed.
  virtual void look() {}
  /// The storm is over, and nothing fails any more: brings the declared state about, and looks whether it is reached and kept.
  /// Returns what is wrong.
  [[nodiscard]] virtual std::vector<std::string> calm() = 0;
  /// Some histories: all is deleted. Returns what does not go.
  [[nodiscard]] virtual std::vector<std::string> end() { return {}; }
};

class Program {
 public:
  virtual ~Program() = default;
  /// For notes: "operator".
  [[nodiscard]] virtual std::string name() const = 0;
  /// How many processes of it there are.
  [[nodiscard]] virtual int processes() const { return 1; }
  /// Called once, before there are machines: its oracles begin to listen, and what its installation brings is put in place.
  virtual void install(World& world) = 0;
  /// Starts a process; `which` counts those of this program, `slot` those of the world.
  [[nodiscard]] virtual std::unique_ptr<ProgramProcess> start(World& world, int which, int slot) = 0;
  [[nodiscard]] virtual std::unique_ptr<Workload> workload(World& world, History& history) = 0;
};

}  // namespace sim
