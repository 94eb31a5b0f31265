// A tar archive (ustar), compressed with gzip, in memory.
//
// Folder src/cli: kubectl slurm. What it reads becomes a document, and pure functions make the text of it. Uses slinky.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "core/result.hpp"

namespace cli {

struct ArchiveFile {
  std::string path;  ///< At most 255 bytes, of which at most 100 follow the last slash that splits it.
  std::string content;
};

/// Returns a path that an archive can hold. Parts that are too long are shortened and end with a hash of the original.
std::string archive_path(std::string_view path);

/// Errors: kInvalid (a path is too long), kInternal (zlib).
core::Result<std::string> tar_gz(const std::vector<ArchiveFile>& files, core::WallTime at);

}  // namespace cli
