#include "enlist/rules/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace enlist {

bool same_word(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, [&](char x, char y) { return lower(x) == lower(y); });
}

std::vector<std::string> list_items(std::string_view list) {
  constexpr std::string_view kAround = " \t\r\v\f";
  std::vector<std::string> out;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    std::string_view item = list.substr(0, end);
    item.remove_prefix(std::min(item.find_first_not_of(kAround), item.size()));
    item = item.substr(0, item.find_last_not_of(kAround) + 1);
    if (!item.empty()) out.emplace_back(item);
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return out;
}

std::string comma_list(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : ",") + item;
  return out;
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
  const bool thousands = text.size() > 1 && (text.back() == 'k' || text.back() == 'K');
  if (thousands) text.remove_suffix(1);
  std::uint64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!thousands) return out;
  return out > UINT64_MAX / 1024 ? std::nullopt : std::optional(out * 1024);
}

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 60;
  std::string out(text.substr(0, kMost));
  std::ranges::replace_if(
      out, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, '?');
  return text.size() > kMost ? out + "..." : out;
}

core::Result<std::chrono::seconds> parse_time(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  constexpr std::string_view kUnits = "smhd";
  constexpr std::array<std::int64_t, 4> kSeconds{1, 60, 3600, 86400};
  const std::size_t found = unit.size() == 1 ? kUnits.find(unit) : std::string_view::npos;
  if (error != std::errc() || found == std::string_view::npos || number < 1 || number > 1000000)
    return core::fail(core::ErrorCode::kInvalid, shown(text) + ": must be a number and s, m, h or d, such as 1h");
  return std::chrono::seconds{number * kSeconds.at(found)};
}

}  // namespace enlist
