// A host in memory: files are in a map, and programs return the output that the test has set.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "enlist/host/host.hpp"

namespace enlist::testing {

class FakeHost : public Host {
 public:
  core::Result<Output> run(const std::vector<std::string>& arguments, std::chrono::milliseconds, const std::string&) override {
    std::string line;
    for (const std::string& word : arguments) line += (line.empty() ? "" : " ") + word;
    ran.push_back(line);
    // Finds the longest beginning of the command line, by whole words, that is a key of `programs`.
    for (std::string part = line;; part.resize(part.find_last_of(' '))) {
      if (const auto found = programs.find(part); found != programs.end()) return found->second;
      if (part.find(' ') == std::string::npos) break;
    }
    return core::fail(core::ErrorCode::kNotFound, "there is no program " + arguments.front());
  }
  core::Result<std::string> read(const std::filesystem::path& file) override {
    const auto found = files.find(file);
    if (found == files.end()) return core::fail(core::ErrorCode::kNotFound, file.string() + ": No such file or directory");
    return found->second.first;
  }
  core::Result<void> write(const std::filesystem::path& file, const std::string& text, unsigned mode) override {
    if (on_write) on_write(file);
    if (full) return core::fail(core::ErrorCode::kUnavailable, file.string() + ": No space left on device");
    files[file] = {text, mode};
    writes.push_back(file);
    return {};
  }
  core::Result<void> write_like(const std::filesystem::path& file, const std::string& text,
                                const std::filesystem::path& like) override {
    const auto found = files.find(like);
    if (found == files.end()) return core::fail(core::ErrorCode::kNotFound, like.string() + ": No such file or directory");
    return write(file, text, found->second.second);
  }
  core::Result<void> remove_leftovers(const std::filesystem::path& file) override {
    leftovers_removed.push_back(file);
    return {};
  }
  core::Result<void> remove(const std::filesystem::path& file) override {
    files.erase(file);
    removed.push_back(file);
    return {};
  }

  std::map<std::string, Output> programs;  ///< The output, by the beginning of the command line.
  std::map<std::filesystem::path, std::pair<std::string, unsigned>> files;  ///< The text and the mode of each file.
  std::vector<std::string> ran;
  std::vector<std::filesystem::path> writes, removed, leftovers_removed;
  std::function<void(const std::filesystem::path&)> on_write;  ///< Called before each write.
  bool full = false;
};

}  // namespace enlist::testing
