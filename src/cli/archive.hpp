// A tar archive (ustar), compressed with gzip, in memory.
//
// Folder src/cli: kubectl slurm. A command makes a document of what it reads; pure functions render the document. Uses slinky.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "core/result.hpp"

namespace cli {

struct ArchiveFile {
  std::string path;  ///< At most 100 bytes, or at most 155 before one of its slashes and at most 100 after it.
  std::string content;
};

/// Shortens the parts of a path so that an archive can hold the path: each folder to 63 bytes, the file name to 100. A part
/// that is too long becomes its beginning, a hash of the original part, and its extension. A path with more than two long
/// folders can still be too long.
std::string archive_path(std::string_view path);

/// Returns a .tar.gz of the files, each modified at `at`. Errors: kInvalid (a path is too long), kInternal (zlib failed).
core::Result<std::string> tar_gz(const std::vector<ArchiveFile>& files, core::WallTime at);

}  // namespace cli
