// The example program (src/example) in a world: its process, its disk, what users do to it, and its oracle. It is a small
// example of all that the simulator must know about a program: see docs/how-to/add-a-program.md.
//
// Folder sim/programs/example: the example as a program of a world. Uses sim/histories and example.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "example/keeper.hpp"
#include "sim/histories/history.hpp"
#include "sim/histories/program.hpp"
#include "sim/histories/world.hpp"
#include "sim/oracles/oracles.hpp"
#include "sim/oracles/tap.hpp"

namespace sim {

/// The oracle of the example. It has the contents of the disk, and is called before every change that the program makes.
class FolderOracle final : public Oracle {
 public:
  explicit FolderOracle(Oracles& all) : all_(all) { all_.add(*this); }

  // The contents of the disk. Users and accidents change them directly.
  example::Contents disk;
  bool readable = true;  ///< Whether the list can be read. False while somebody edits the list.

  // Called before the program changes the disk.
  void writes(const std::string& name);
  void removes(const std::string& name);

  [[nodiscard]] std::vector<std::string> unmet() const override;

 private:
  [[nodiscard]] bool is_foreign(const std::string& name) const;
  Oracles& all_;
};

class ExampleProgram final : public Program {
 public:
  /// Returns the oracle. Call this only after install().
  [[nodiscard]] FolderOracle& oracle() { return *oracle_; }
  [[nodiscard]] int starts() const { return starts_; }
  /// Returns the disk, as the process in this slot of the world reaches it.
  [[nodiscard]] std::shared_ptr<example::Disk> disk(World& world, int slot);

  // Implements Program.
  [[nodiscard]] std::string name() const override { return "keep-files"; }
  void install(World& world) override { oracle_ = std::make_unique<FolderOracle>(world.oracles()); }
  [[nodiscard]] std::unique_ptr<ProgramProcess> start(World& world, int which, int slot) override;
  [[nodiscard]] std::unique_ptr<Workload> workload(World& world, History& history) override;

 private:
  std::unique_ptr<FolderOracle> oracle_;
  int starts_ = 0;
};

}  // namespace sim
