// The disk of this machine: a folder, and a list in JSON beside it.
#pragma once

#include <filesystem>
#include <string>

#include "example/folder.hpp"

namespace example {

class LocalDisk final : public Disk {
 public:
  /// The file `list` is a JSON object of file names and texts: {"motd": "Hello"}. No name may begin with "." or contain "/".
  LocalDisk(std::filesystem::path list, std::filesystem::path folder);
  core::Result<Contents> read() override;
  core::Result<void> write(const std::string& name, const std::string& text) override;
  core::Result<void> remove(const std::string& name) override;

 private:
  std::filesystem::path list_, folder_;
};

}  // namespace example
