#include "slurm/accounting/usage.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace slurm::accounting {
namespace {

constexpr std::string_view kUnits = "KMGTPE";

/// Reads a count such as "4" or "1.5G". Memory is returned in MiB, and a number without a unit is MiB. nullopt if malformed.
std::optional<std::int64_t> read_count(std::string_view text, bool memory) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return {};
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (unit.size() > 1) return {};
  int power = 0;
  if (!unit.empty()) {
    const std::size_t at = kUnits.find(unit.front());
    if (at == std::string_view::npos) return {};
    power = static_cast<int>(at) + 1 - (memory ? 2 : 0);
  }
  const double value = std::round(number * std::pow(1024.0, power));
  if (!(std::abs(value) < 9.2e18)) return {};
  return static_cast<std::int64_t>(value);
}

/// Calls `each(first, last, step)` for the parts of "1-3,7,10-20:5%2".
template <class Each>
void for_tasks(std::string_view text, const Each& each) {
  text = text.substr(0, text.find('%'));
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    std::int64_t first = 0, step = 1;
    const char* const end = part.data() + part.size();
    auto at = std::from_chars(part.data(), end, first);
    std::int64_t last = first;
    if (at.ptr != end && *at.ptr == '-') at = std::from_chars(at.ptr + 1, end, last);
    if (at.ptr != end && *at.ptr == ':') std::from_chars(at.ptr + 1, end, step);
    if (last >= first && step > 0) each(first, last, step);
  }
}

}  // namespace

TresCounts read_tres(std::string_view text) {
  TresCounts out;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    const std::string_view name = part.substr(0, equals);
    if (const auto count = read_count(part.substr(equals + 1), name == "mem")) out[std::string(name)] = *count;
  }
  return out;
}

std::string QueuedJob::full_id() const {
  if (array != 0 && task) return std::to_string(array) + "_" + std::to_string(*task);
  return std::to_string(array != 0 ? array : id) + (tasks.empty() ? "" : "_[" + tasks + "]");
}

std::int64_t QueuedJob::count() const {
  if (task || tasks.empty()) return 1;
  std::int64_t out = 0;
  for_tasks(tasks, [&](std::int64_t first, std::int64_t last, std::int64_t step) { out += (last - first) / step + 1; });
  return std::max<std::int64_t>(out, 1);
}

bool QueuedJob::has_task(std::int64_t index) const {
  if (task) return *task == index;
  bool out = false;
  for_tasks(tasks, [&](std::int64_t first, std::int64_t last, std::int64_t step) {
    out = out || (index >= first && index <= last && (index - first) % step == 0);
  });
  return out;
}

}  // namespace slurm::accounting
