#include "sim/programs/example/program.hpp"

#include <functional>

namespace sim {

namespace {

using example::kMark;

// --- The disk ---------------------------------------------------------------------------------------------------------

/// A disk on which each change is a write of the world, so that all faults of writes can happen to it.
class FaultyDisk final : public example::Disk {
 public:
  FaultyDisk(World& world, FolderOracle& oracle, int slot) : world_(world), oracle_(oracle), slot_(slot) {}

  core::Result<example::Contents> read() override {
    if (!oracle_.readable) return core::fail(core::ErrorCode::kUnavailable, "the list cannot be read");
    return oracle_.disk;
  }
  core::Result<void> write(const std::string& name, const std::string& text) override {
    return change("PUT", name, [&] {
      oracle_.writes(name);
      oracle_.disk.files[name] = text;
    });
  }
  core::Result<void> remove(const std::string& name) override {
    return change("DELETE", name, [&] {
      oracle_.removes(name);
      oracle_.disk.files.erase(name);
    });
  }

 private:
  core::Result<void> change(const std::string& method, const std::string& name, const std::function<void()>& act) {
    const Fault fault = world_.faults().decide({.method = method, .target = "/files/" + name});
    world_.oracles().note(method + " " + name + ": " + std::string(to_string(fault)));
    const bool dies = fault == Fault::kCrashBefore || fault == Fault::kCrashAfter;
    if (dies) world_.crash(slot_, core::Duration{500});
    switch (fault) {
      case Fault::kNone:
      case Fault::kSlow:
        act();
        return {};
      case Fault::kLostReply:
      case Fault::kInternalAfter:
      case Fault::kCrashAfter:
        act();
        return core::fail(core::ErrorCode::kUnknownOutcome, "I/O error");
      case Fault::kLostRequest:
      case Fault::kCrashBefore:
        return core::fail(core::ErrorCode::kUnknownOutcome, "I/O error");
      default:
        return core::fail(core::ErrorCode::kUnavailable, "no space is left");
    }
  }

  World& world_;
  FolderOracle& oracle_;
  int slot_;
};

// --- The process ------------------------------------------------------------------------------------------------------

class ExampleProcess final : public ProgramProcess {
 public:
  ExampleProcess(World& world, std::shared_ptr<example::Disk> disk)
      : host_(world.loop()),
        random_(world.random().fork()),
        log_(world.oracles(), host_.clock(), "files", world.options().print),
        keeper_(host_, random_, log_, std::move(disk)) {
    keeper_.start();
  }
  [[nodiscard]] SimHost& host() override { return host_; }

 private:
  SimHost host_;
  SeededRandom random_;
  OracleLogger log_;
  example::Keeper keeper_;
};

// --- Users ------------------------------------------------------------------------------------------------------------

class ExampleWorkload final : public Workload {
 public:
  ExampleWorkload(World& world, History& history, ExampleProgram& program)
      : world_(world), random_(history.random()), program_(program) {}

  void found() override {
    disk().list = {{"a", "1"}, {"b", "2"}};
    world_.start(program_);
  }

  std::vector<Action> actions() override {
    std::vector<Action> out;
    out.push_back({4, [this] { disk().list[some_name()] = std::to_string(random_.below(9)); }});
    out.push_back({3, [this] { disk().list.erase(some_name()); }});
    out.push_back({2, [this] { program_.oracle().readable = !program_.oracle().readable; }});
    out.push_back({2, [this] { disk().files[some_name()] = "somebody else's"; }});
    out.push_back({2, [this] { disk().files[some_name()] = std::string(kMark) + "edited"; }});
    out.push_back({2, [this] { disk().files.erase(some_name()); }});
    return out;
  }

  std::vector<std::string> calm() override {
    program_.oracle().readable = true;
    return world_.settle(kLimit);
  }

  std::vector<std::string> end() override {
    disk().list.clear();
    return world_.settle(kLimit);
  }

 private:
  static constexpr core::Duration kLimit{120000};
  [[nodiscard]] example::Contents& disk() { return program_.oracle().disk; }
  [[nodiscard]] std::string some_name() { return {static_cast<char>('a' + random_.below(6))}; }

  World& world_;
  SeededRandom& random_;
  ExampleProgram& program_;
};

}  // namespace

// --- The oracle -------------------------------------------------------------------------------------------------------

bool FolderOracle::is_foreign(const std::string& name) const {
  const auto file = disk.files.find(name);
  return file != disk.files.end() && !example::is_ours(file->second);
}

void FolderOracle::writes(const std::string& name) {
  if (is_foreign(name)) all_.violation(name + " is overwritten, and it is somebody else's");
}

void FolderOracle::removes(const std::string& name) {
  if (is_foreign(name)) all_.violation(name + " is removed, and it is somebody else's");
  if (!readable) all_.violation(name + " is removed, and the list cannot be read");
  if (disk.list.contains(name)) all_.violation(name + " is removed, and it is listed");
}

std::vector<std::string> FolderOracle::unmet() const {
  if (!readable) return {};  // The declared state is unknown while the list cannot be read.
  std::vector<std::string> out;
  for (const auto& [name, text] : disk.list) {
    const auto file = disk.files.find(name);
    if (file == disk.files.end()) {
      out.push_back(name + " is missing");
    } else if (!is_foreign(name) && file->second != std::string(kMark) + text) {
      out.push_back(name + " is not as listed");
    }
  }
  for (const auto& [name, text] : disk.files) {
    if (!is_foreign(name) && !disk.list.contains(name)) out.push_back(name + " is not listed");
  }
  return out;
}

// --- The program ------------------------------------------------------------------------------------------------------

std::shared_ptr<example::Disk> ExampleProgram::disk(World& world, int slot) {
  return std::make_shared<FaultyDisk>(world, *oracle_, slot);
}

std::unique_ptr<ProgramProcess> ExampleProgram::start(World& world, int, int slot) {
  ++starts_;
  return std::make_unique<ExampleProcess>(world, disk(world, slot));
}

std::unique_ptr<Workload> ExampleProgram::workload(World& world, History& history) {
  return std::make_unique<ExampleWorkload>(world, history, *this);
}

}  // namespace sim
