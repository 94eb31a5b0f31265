// A store, a host and a log that keep everything in memory, for unit tests.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/log.hpp"
#include "core/loop.hpp"
#include "enlist/host/host.hpp"
#include "enlist/store/store.hpp"

namespace enlist::testing {

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(core::Loop& loop) : loop_(loop) {}
  [[nodiscard]] const Contents& contents() const override { return contents_; }
  [[nodiscard]] std::string problem() const override { return problem_; }
  void commit(Change change, Done done) override {
    loop_.after(core::Duration{0}, [this, change = std::move(change), done = std::move(done)] {
      core::Result<Changes> changes = change(contents_);
      if (!changes) return done(std::unexpected(changes.error()));
      const bool any =
          !changes->pools.empty() || !changes->nodes.empty() || !changes->tokens.empty() || !changes->values.empty();
      if (any) problem_ = full ? "the disk is full" : "";
      if (any && full) return done(core::fail(core::ErrorCode::kUnavailable, problem_));
      apply(contents_.pools, changes->pools);
      apply(contents_.nodes, changes->nodes);
      apply(contents_.tokens, changes->tokens);
      apply(contents_.values, changes->values);
      if (any) {
        ++commits;
        for (const auto& listener : listeners_) listener(*changes);
      }
      done({});
    });
  }
  void listen(std::function<void(const Changes&)> listener) override { listeners_.push_back(std::move(listener)); }
  /// Returns the contents for a test to set up.
  [[nodiscard]] Contents& set() { return contents_; }

  int commits = 0;  ///< The number of commits that changed something.
  bool full = false;

 private:
  template <class Rows, class Changed>
  static void apply(Rows& rows, const Changed& changed) {
    for (const auto& [key, row] : changed) {
      if (row) {
        rows.insert_or_assign(key, *row);
      } else {
        rows.erase(key);
      }
    }
  }
  std::string problem_;
  core::Loop& loop_;
  Contents contents_;
  std::vector<std::function<void(const Changes&)>> listeners_;
};

class FakeHost final : public Host {
 public:
  core::Result<Output> run(const std::vector<std::string>& arguments, std::chrono::milliseconds, const std::string&) override {
    std::string line;
    for (const std::string& word : arguments) line += (line.empty() ? "" : " ") + word;
    ran.push_back(line);
    for (const auto& [begin, output] : outputs) {
      if (line.starts_with(begin)) return output;
    }
    return Output{};
  }
  core::Result<std::string> read(const std::filesystem::path& file) override {
    if (unreadable == file) return core::fail(core::ErrorCode::kUnavailable, file.string() + ": Input/output error");
    const auto found = files.find(file);
    if (found == files.end()) return core::fail(core::ErrorCode::kNotFound, file.string() + ": No such file or directory");
    return found->second;
  }
  core::Result<void> write(const std::filesystem::path& file, const std::string& text, unsigned mode) override {
    files[file] = text;
    modes[file] = mode;
    written.push_back(file);
    return {};
  }
  core::Result<void> write_as(const std::filesystem::path& file, const std::string& text, unsigned mode,
                              const std::filesystem::path& owner_of) override {
    owners_of[file] = owner_of;
    return write(file, text, mode);
  }
  core::Result<void> remove(const std::filesystem::path& file) override {
    files.erase(file);
    return {};
  }

  std::map<std::filesystem::path, std::string> files;
  std::map<std::filesystem::path, unsigned> modes;
  std::map<std::filesystem::path, std::filesystem::path> owners_of;  ///< Maps a file to the one whose owner write_as() gave it.
  std::vector<std::filesystem::path> written;
  std::filesystem::path unreadable;
  std::vector<std::pair<std::string, Output>> outputs;  ///< The output of each command that begins with the text.
  std::vector<std::string> ran;
};

class KeptLog final : public core::Logger {
 public:
  void log(core::Level level, std::string_view message, std::vector<core::Field> fields) override {
    text += core::format_log_line({}, level, message, fields) + "\n";
  }
  std::string text;
};

}  // namespace enlist::testing
