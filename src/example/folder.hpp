// The disk as the engine sees it: the contents that were last read, and the target of the acts that change the disk.
//
// Folder src/example: the program of docs/how-to/add-a-program.md. Uses run, plan and core.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/loop.hpp"
#include "example/plan.hpp"
#include "plan/executor.hpp"

namespace example {

/// Reads and writes files. Its functions can block, so they are called on other threads (core::Loop::offload). Several calls
/// can run at the same time.
class Disk {
 public:
  virtual ~Disk() = default;
  /// Reads the list and all files of the folder. Fails if the list or any file cannot be read.
  virtual core::Result<Contents> read() = 0;
  /// Creates the file or replaces it as a whole. After an error, the file is as it was.
  virtual core::Result<void> write(const std::string& name, const std::string& text) = 0;
  virtual core::Result<void> remove(const std::string& name) = 0;
};

class Folder final : public plan::Target {
 public:
  /// Calls `on_look` after each reading. `changed` is false if this reading had the same result as the previous reading.
  Folder(core::Loop& loop, std::shared_ptr<Disk> disk, std::function<void(bool changed)> on_look);

  /// Reads the disk now, and again each second.
  void look();
  void stop();
  [[nodiscard]] const core::Result<Contents>& contents() const { return contents_; }
  /// Return how many readings have begun so far, and how many of them have ended.
  [[nodiscard]] std::uint64_t begun() const { return begun_; }
  [[nodiscard]] std::uint64_t ended() const { return ended_; }

 private:
  using Change = std::function<core::Result<void>(Disk&)>;
  void looked(core::Result<Contents> contents);
  void carry_out(Change change, Done done);

  core::Loop& loop_;
  std::shared_ptr<Disk> disk_;
  std::function<void(bool)> on_look_;
  core::Result<Contents> contents_ = core::fail(core::ErrorCode::kUnavailable, "not read yet");
  std::uint64_t begun_ = 0, ended_ = 0;
  bool stopped_ = false;
  core::Timer again_;
};

}  // namespace example
