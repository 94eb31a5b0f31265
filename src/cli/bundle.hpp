// `kubectl slurm support-bundle`: collects everything that explains the state of a cluster, and no secrets. Only the pure
// function bundle_files makes the files of the archive, and it redacts all of them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/archive.hpp"
#include "core/json.hpp"

namespace cli {

struct BundleFacts {
  std::vector<core::Json> objects;                            ///< Resources of any kind, even Secrets.
  std::vector<std::pair<std::string, std::string>> texts;     ///< Pairs of path and content: logs, status, versions.
  std::vector<std::pair<std::string, core::Json>> documents;  ///< Pairs of path and content.
  std::vector<std::string> problems;                          ///< What could not be read, and why.
  std::string salt;  ///< Random text. Without this salt, somebody could guess Secrets from their hashes.
};

/// Returns the values of the Secrets among these objects. Omits the Secrets of Helm releases. Of a Secret that holds a service
/// account's token, returns only the token.
std::vector<std::string> secret_values(const std::vector<core::Json>& objects);
/// Returns the names of the ConfigMaps that the pods mount or read environment variables from.
std::vector<std::string> mounted_config_maps(const std::vector<core::Json>& pods);
std::vector<ArchiveFile> bundle_files(const BundleFacts& facts);

}  // namespace cli
