#include "slurm/rest/release.hpp"

#include <array>

namespace slurm {

Release parse_release(std::string_view text) {
  std::array<int, 3> numbers{};
  std::size_t at = text.find_first_of("0123456789");
  for (int& number : numbers) {
    if (at >= text.size() || text[at] < '0' || text[at] > '9') break;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9' && number < 100'000; ++at)
      number = number * 10 + (text[at] - '0');
    if (at >= text.size() || text[at] != '.') break;
    ++at;
  }
  return {numbers[0], numbers[1], numbers[2]};
}

}  // namespace slurm
