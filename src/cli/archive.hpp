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
  std::string path;  ///< At most 255 bytes, of which the last 100 at most follow a slash.
  std::string content;
};

/// A path that an archive takes: the parts that are too long end with a hash of what they were.
std::string archive_path(std::string_view path);

/// Error: kInvalid (a path is too long), kInternal (zlib).
core::Result<std::string> tar_gz(const std::vector<ArchiveFile>& files, core::WallTime at);

}  // namespace cli
