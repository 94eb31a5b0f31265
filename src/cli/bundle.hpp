// `kubectl slurm support-bundle`: all that tells why a cluster does what it does, and no secret. What was read becomes files in
// one pure function, through which everything goes: nothing reaches the archive past the redactor.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/archive.hpp"
#include "core/json.hpp"

namespace cli {

struct BundleFacts {
  std::vector<core::Json> objects;                            ///< Of any kind, Secrets too.
  std::vector<std::pair<std::string, std::string>> texts;     ///< Path and content: logs, status, versions.
  std::vector<std::pair<std::string, core::Json>> documents;  ///< Path and content.
  std::vector<std::string> problems;                          ///< What could not be read, and why.
  std::string salt;                                           ///< Random: hashes of Secrets cannot be looked up.
};

/// The values of Secrets among these objects.
std::vector<std::string> secret_values(const std::vector<core::Json>& objects);
/// The names of the ConfigMaps that pods mount, or take variables from.
std::vector<std::string> mounted_config_maps(const std::vector<core::Json>& pods);
std::vector<ArchiveFile> bundle_files(const BundleFacts& facts);

}  // namespace cli
