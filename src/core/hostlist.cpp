#include "core/hostlist.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>

namespace core {
namespace {

constexpr std::size_t kMaxNames = 1'000'000;
constexpr std::size_t kMaxDigits = 18;  // fits std::uint64_t

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::optional<std::uint64_t> number(std::string_view text) {
  if (text.empty() || text.size() > kMaxDigits) return std::nullopt;
  std::uint64_t value = 0;
  for (char c : text) {
    if (!is_digit(c)) return std::nullopt;
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

/// Splits at commas outside of brackets.
Result<std::vector<std::string_view>> split_items(std::string_view text) {
  std::vector<std::string_view> out;
  bool inside = false;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && !inside)) {
      if (i > start) out.push_back(text.substr(start, i - start));
      start = i + 1;
    } else if (text[i] == '[') {
      if (inside) return fail(ErrorCode::kInvalid, fmt::format("hostlist \"{}\": [ inside of [", text));
      inside = true;
    } else if (text[i] == ']') {
      if (!inside) return fail(ErrorCode::kInvalid, fmt::format("hostlist \"{}\": ] without [", text));
      inside = false;
    }
  }
  if (inside) return fail(ErrorCode::kInvalid, fmt::format("hostlist \"{}\": [ without ]", text));
  return out;
}

/// Expands the content of one pair of brackets.
Result<std::vector<std::string>> expand_ranges(std::string_view ranges) {
  std::vector<std::string> out;
  std::size_t start = 0;
  while (start <= ranges.size()) {
    const std::size_t end = std::min(ranges.find(',', start), ranges.size());
    const std::string_view range = ranges.substr(start, end - start);
    const std::size_t dash = range.find('-');
    const std::string_view low_text = range.substr(0, dash);
    const auto low = number(low_text);
    const auto high = dash == std::string_view::npos ? low : number(range.substr(dash + 1));
    if (!low || !high || *high < *low) return fail(ErrorCode::kInvalid, fmt::format("hostlist range \"{}\"", range));
    if (*high - *low >= kMaxNames || out.size() + (*high - *low) >= kMaxNames) {
      return fail(ErrorCode::kInvalid, fmt::format("hostlist range \"{}\": too many names", range));
    }
    for (std::uint64_t n = *low; n <= *high; ++n) out.push_back(fmt::format("{:0{}}", n, low_text.size()));
    start = end + 1;
  }
  return out;
}

Result<std::vector<std::string>> expand_item(std::string_view item) {
  std::vector<std::string> names{""};
  while (!item.empty()) {
    const std::size_t open = item.find('[');
    for (std::string& name : names) name += item.substr(0, open);
    if (open == std::string_view::npos) break;
    const std::size_t close = item.find(']', open);
    const auto values = expand_ranges(item.substr(open + 1, close - open - 1));
    if (!values) return std::unexpected(values.error());
    if (names.size() * values->size() > kMaxNames) return fail(ErrorCode::kInvalid, "hostlist: too many names");
    std::vector<std::string> product;
    product.reserve(names.size() * values->size());
    for (const std::string& name : names) {
      for (const std::string& value : *values) product.push_back(name + value);
    }
    names = std::move(product);
    item.remove_prefix(close + 1);
  }
  return names;
}

struct Range {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::size_t width = 0;
  /// Reports whether the range contains the number when it is written with `digits` digits.
  [[nodiscard]] bool has(std::uint64_t value, std::size_t digits) const {
    if (value < low || value > high) return false;
    const std::size_t plain = fmt::formatted_size("{}", value);
    return digits == std::max(plain, width);
  }
};

/// Reports whether the item has the form prefix[ranges], with a prefix that does not end with a digit.
bool is_numbered(std::string_view item, std::size_t open) {
  return item.find(']') == item.size() - 1 && open > 0 && !is_digit(item[open - 1]);
}

/// Returns where the digits at the end of the name begin. Counts at most kMaxDigits digits, because one number can have no
/// more.
std::size_t digits_at(std::string_view name) {
  std::size_t start = name.size();
  while (start > 0 && is_digit(name[start - 1]) && name.size() - start < kMaxDigits) --start;
  return start;
}

/// Calls `each` for the ranges in one pair of brackets until `each` returns true. Returns false if a range is malformed.
template <class Each>
bool for_ranges(std::string_view ranges, Each each) {
  for (std::size_t start = 0; start <= ranges.size();) {
    const std::size_t end = std::min(ranges.find(',', start), ranges.size());
    const std::string_view range = ranges.substr(start, end - start);
    const std::size_t dash = range.find('-');
    const auto low = number(range.substr(0, dash));
    const auto high = dash == std::string_view::npos ? low : number(range.substr(dash + 1));
    if (!low || !high || *high < *low) return false;
    if (each(Range{*low, *high, std::min(dash, range.size())})) return true;
    start = end + 1;
  }
  return true;
}

bool item_names(std::string_view item, std::string_view name) {
  const std::size_t open = item.find('[');
  if (open == std::string_view::npos) return item == name;
  if (name.substr(0, open) != item.substr(0, open)) return false;
  const std::size_t close = item.find(']', open);
  const std::string_view ranges = item.substr(open + 1, close - open - 1);
  const std::string_view rest = item.substr(close + 1);
  name.remove_prefix(open);
  bool found = false;
  for (std::size_t digits = 1; digits <= name.size() && is_digit(name[digits - 1]) && !found; ++digits) {
    const auto value = number(name.substr(0, digits));
    const bool read = for_ranges(ranges, [&](const Range& range) {
      found = value && range.has(*value, digits) && item_names(rest, name.substr(digits));
      return found;
    });
    found = found || !read;
  }
  return found;
}

/// The names with one prefix whose numbers are padded to one width. Width 0: the numbers are not padded.
using Class = std::pair<std::string, std::size_t>;

struct Split {
  std::string prefix;
  std::string_view digits;  ///< The digits at the end, at most kMaxDigits of them.
};

Split split_name(const std::string& name) {
  std::size_t start = name.size();
  while (start > 0 && is_digit(name[start - 1]) && name.size() - start < kMaxDigits) --start;
  return {name.substr(0, start), std::string_view(name).substr(start)};
}

std::string format_class(const Class& key, std::vector<std::uint64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  const auto& [prefix, width] = key;
  std::string ranges;
  const bool single = numbers.size() == 1;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1) ++end;
    if (!ranges.empty()) ranges += ',';
    ranges += fmt::format("{:0{}}", numbers[i], width);
    if (end > i) ranges += fmt::format("-{:0{}}", numbers[end], width);
    i = end + 1;
  }
  return single ? prefix + ranges : prefix + "[" + ranges + "]";
}

}  // namespace

bool hostlist_names(std::string_view text, std::string_view name) {
  const auto items = split_items(text);
  return !items || std::ranges::any_of(*items, [&](std::string_view item) { return item_names(item, name); });
}

HostIndex::HostIndex(std::vector<std::string_view> names) : names_(std::move(names)) {
  std::ranges::sort(names_);
  for (const std::string_view name : names_) {
    const std::size_t start = digits_at(name);
    if (const auto value = number(name.substr(start)))
      numbered_[name.substr(0, start)].push_back({*value, name, name.size() - start});
  }
  for (auto& [prefix, entries] : numbered_) std::ranges::sort(entries, {}, &Entry::number);
}

void HostIndex::look_up(std::string_view text, const std::function<void(std::string_view)>& each) const {
  const auto one_by_one = [&](std::string_view list) {
    for (const std::string_view name : names_) {
      if (hostlist_names(list, name)) each(name);
    }
  };
  const auto items = split_items(text);
  if (!items) return one_by_one(text);
  for (const std::string_view item : *items) {
    const std::size_t open = item.find('[');
    if (open == std::string_view::npos) {
      if (const auto it = std::ranges::lower_bound(names_, item); it != names_.end() && *it == item) each(*it);
      continue;
    }
    if (!is_numbered(item, open)) {
      one_by_one(item);
      continue;
    }
    const auto entries = numbered_.find(item.substr(0, open));
    if (entries == numbered_.end()) continue;
    const bool read = for_ranges(item.substr(open + 1, item.size() - open - 2), [&](const Range& range) {
      for (auto it = std::ranges::lower_bound(entries->second, range.low, {}, &Entry::number);
           it != entries->second.end() && it->number <= range.high; ++it) {
        if (range.has(it->number, it->digits)) each(it->name);
      }
      return false;
    });
    if (!read) one_by_one(item);
  }
}

void HostSet::add(std::string_view text) {
  const auto items = split_items(text);
  if (!items) {
    any_ = true;
    return;
  }
  const auto add_range = [](Ranges& ranges, std::uint64_t low, std::uint64_t high) {
    auto it = ranges.upper_bound(low);
    if (it != ranges.begin() && std::prev(it)->second >= low) --it;
    while (it != ranges.end() && it->first <= high) {
      low = std::min(low, it->first);
      high = std::max(high, it->second);
      it = ranges.erase(it);
    }
    ranges.emplace(low, high);
  };
  for (const std::string_view item : *items) {
    const std::size_t open = item.find('[');
    if (open == std::string_view::npos) {
      names_.emplace(item);
      continue;
    }
    const bool read =
        is_numbered(item, open) && for_ranges(item.substr(open + 1, item.size() - open - 2), [&](const Range& range) {
          add_range(numbered_[std::string(item.substr(0, open))][range.width], range.low, range.high);
          return false;
        });
    if (!read) others_.emplace(item);
  }
}

bool HostSet::has(std::string_view name) const {
  if (any_ || names_.contains(name)) return true;
  const std::size_t start = digits_at(name);
  const auto numbered = numbered_.find(name.substr(0, start));
  if (const auto value = number(name.substr(start)); value && numbered != numbered_.end()) {
    for (const auto& [width, ranges] : numbered->second) {
      const auto after = ranges.upper_bound(*value);
      if (after == ranges.begin()) continue;
      const auto& [low, high] = *std::prev(after);
      if (Range{low, high, width}.has(*value, name.size() - start)) return true;
    }
  }
  return std::ranges::any_of(others_, [&](const std::string& item) { return item_names(item, name); });
}

Result<std::vector<std::string>> expand_hostlist(std::string_view text) {
  const auto items = split_items(text);
  if (!items) return std::unexpected(items.error());
  std::vector<std::string> out;
  for (std::string_view item : *items) {
    auto names = expand_item(item);
    if (!names) return std::unexpected(names.error());
    if (out.size() + names->size() > kMaxNames) return fail(ErrorCode::kInvalid, "hostlist: too many names");
    out.insert(out.end(), std::make_move_iterator(names->begin()), std::make_move_iterator(names->end()));
  }
  return out;
}

std::string compress_hostlist(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());

  // "07" and "12" are both padded to two digits, "7" and "12" are not padded. A width counts as padded if some number of that
  // width begins with 0.
  std::map<Class, bool> padded;
  for (const std::string& name : names) {
    const Split split = split_name(name);
    if (split.digits.size() > 1 && split.digits[0] == '0') padded[{split.prefix, split.digits.size()}] = true;
  }
  std::map<Class, std::vector<std::uint64_t>> classes;
  std::string out;
  const auto append = [&](const std::string& piece) {
    if (!out.empty()) out += ',';
    out += piece;
  };
  for (const std::string& name : names) {
    const Split split = split_name(name);
    const auto value = number(split.digits);
    if (!value) {
      append(name);
      continue;
    }
    const Class wide{split.prefix, split.digits.size()};
    classes[padded.contains(wide) ? wide : Class{split.prefix, 0}].push_back(*value);
  }
  for (auto& [key, numbers] : classes) append(format_class(key, std::move(numbers)));
  return out;
}

}  // namespace core
