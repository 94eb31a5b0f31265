// Reads the pool file regularly, and carries out the acts of its rollout.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "core/loop.hpp"
#include "core/result.hpp"
#include "enlist/coordinator/pools_acts.hpp"
#include "enlist/host/host.hpp"
#include "enlist/store/store.hpp"
#include "plan/executor.hpp"

namespace enlist {

class FileTarget final : public plan::Target {
 public:
  using Content = core::Result<std::optional<std::string>>;

  /// Calls `on_look` after each reading of the file. The gate of a write waits for a later reading. `changed` is false if the
  /// reading has the same result as the one before. `host` is used on other threads. The loop must not run any more after the
  /// target is destroyed.
  FileTarget(core::Loop& loop, Store& store, Host& host, std::filesystem::path file, std::function<void(bool changed)> on_look);

  /// Reads the file now, and again every two seconds.
  void look();
  void stop();
  /// Returns the file as it was last read. nullopt: there is none. Error: it could not be read, or was not read yet.
  [[nodiscard]] const Content& content() const { return content_; }
  /// Readings are numbered from 1. Return the number of the last one that has begun, and the highest of those that have ended;
  /// 0: none.
  [[nodiscard]] std::uint64_t begun() const { return begun_; }
  [[nodiscard]] std::uint64_t ended() const { return ended_; }

 private:
  void looked(std::uint64_t reading, Content content);
  void write(const WritePoolFile& act, Done done);

  core::Loop& loop_;
  Host& host_;
  std::filesystem::path file_;
  std::function<void(bool)> on_look_;
  Content content_ = core::fail(core::ErrorCode::kUnavailable, "the pool file is not read yet");
  std::uint64_t begun_ = 0, ended_ = 0;
  bool stopped_ = false;
  core::Timer again_;
};

}  // namespace enlist
