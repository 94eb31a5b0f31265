// Slurm's releases as numbers, for behaviour that differs between releases.
#pragma once

#include <compare>
#include <string_view>

namespace slurm {

struct Release {
  int major = 0, minor = 0, patch = 0;
  friend auto operator<=>(const Release&, const Release&) = default;
};

/// Parses the first three numbers of "26.05.5" or "slurm 24.11.5-1". Missing numbers are 0.
[[nodiscard]] Release parse_release(std::string_view text);

}  // namespace slurm
