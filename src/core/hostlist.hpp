// Slurm hostlists: "cpu-[0-3,7],gpu-[01-16],rack[0-1]n[0-3],login".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace core {

/// The names a hostlist stands for, in its order, duplicates kept. A range is padded to the width of its first number. A name
/// may have several brackets; the last varies fastest. Errors: kInvalid (brackets, ranges, more than 1,000,000 names).
Result<std::vector<std::string>> expand_hostlist(std::string_view text);

/// One hostlist for these names: sorted, without duplicates, the numbers at the ends of names gathered into ranges.
std::string compress_hostlist(std::vector<std::string> names);

}  // namespace core
