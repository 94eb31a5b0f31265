// A program in a world: everything that the simulator needs to know about the program. World, History and Oracles do not know
// any program by name. Each program has a folder in sim/programs with its processes, its workload and its oracles.
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

/// One process of a program, on its own host. Destroying the object simulates a crash.
class ProgramProcess {
 public:
  virtual ~ProgramProcess() = default;
  [[nodiscard]] virtual SimHost& host() = 0;
  /// Reports whether this process is the leader, if the program has several processes.
  [[nodiscard]] virtual bool leads() const { return true; }
};

/// The actions of a program's users, and other events that concern it, drawn from the history's seed.
class Workload {
 public:
  struct Action {
    int weight;
    std::function<void()> act;
  };
  virtual ~Workload() = default;
  /// Creates the objects that the program works on, and starts the program's processes.
  virtual void found() = 0;
  /// Returns the actions of the storm, in addition to the accidents of every world.
  [[nodiscard]] virtual std::vector<Action> actions() = 0;
  /// Called after each action of the storm, for actions that the workload draws from its own random sources.
  virtual void act_apart() {}
  /// Called after each action of the storm, when some time has passed, so that the workload can record the state of the world.
  virtual void look() {}
  /// Called when the storm is over and there are no more faults: brings about the declared state, and checks that this state is
  /// reached and kept. Returns what is wrong.
  [[nodiscard]] virtual std::vector<std::string> calm() = 0;
  /// Called at the end of some histories: deletes everything. Returns the objects that do not disappear.
  [[nodiscard]] virtual std::vector<std::string> end() { return {}; }
};

class Program {
 public:
  virtual ~Program() = default;
  /// Returns the program's name for notes, such as "operator".
  [[nodiscard]] virtual std::string name() const = 0;
  /// Returns the number of the program's processes.
  [[nodiscard]] virtual int processes() const { return 1; }
  /// Called once, before any machines exist: connects the program's oracles, and creates the objects of its installation.
  virtual void install(World& world) = 0;
  /// Starts a process. `which` is its index in this program, `slot` in the world.
  [[nodiscard]] virtual std::unique_ptr<ProgramProcess> start(World& world, int which, int slot) = 0;
  [[nodiscard]] virtual std::unique_ptr<Workload> workload(World& world, History& history) = 0;
};

}  // namespace sim
