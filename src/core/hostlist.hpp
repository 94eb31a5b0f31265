// Slurm hostlists: "cpu-[0-3,7],gpu-[01-16],rack[0-1]n[0-3],login".
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace core {

/// Expands a hostlist in its order and keeps duplicates. Pads numbers of a range to the width of its first number. If an item
/// has several brackets, the last varies fastest. Error: kInvalid (malformed brackets or ranges, more than 1,000,000 names).
Result<std::vector<std::string>> expand_hostlist(std::string_view text);

/// Reports whether a hostlist contains the name. Does not expand the hostlist: a user's `-w node[0-99999]` is a few bytes, and
/// a thousand such jobs must stay cheap. A hostlist with malformed brackets counts as containing every name. An item with a
/// malformed range counts as containing every name that consists of the item's text before the brackets and then a digit.
bool hostlist_names(std::string_view text, std::string_view name);

/// Finds which names of a fixed set occur in a hostlist. Efficient for many hostlists.
class HostIndex {
 public:
  /// Stores only views of the names, so the names must outlive this object.
  explicit HostIndex(std::vector<std::string_view> names);
  /// Calls `each` for the names that the hostlist contains, possibly more than once for a name. The cost of a range depends on
  /// how many of our names are in the range, not on its length. An item whose brackets do not have the form prefix[ranges] is
  /// compared with all names.
  void look_up(std::string_view text, const std::function<void(std::string_view name)>& each) const;

 private:
  struct Entry {
    std::uint64_t number;
    std::string_view name;
    std::size_t digits;
  };
  std::vector<std::string_view> names_;                      ///< Sorted.
  std::map<std::string_view, std::vector<Entry>> numbered_;  ///< Maps a prefix to its names, sorted by number.
};

/// Collects many hostlists and looks up names in them. A long range takes no more memory than a short one, and overlapping
/// ranges are merged.
class HostSet {
 public:
  void add(std::string_view text);
  /// Reports whether any of the added hostlists contains the name, in the sense of hostlist_names.
  [[nodiscard]] bool has(std::string_view name) const;

 private:
  using Ranges = std::map<std::uint64_t, std::uint64_t>;  ///< Maps the first number of each range to the last.
  bool any_ = false;                                      ///< A list was malformed, so has() is true for every name.
  std::set<std::string, std::less<>> names_;
  /// Maps the prefix before the brackets, and then the width to which the numbers are padded, to the ranges.
  std::map<std::string, std::map<std::size_t, Ranges>, std::less<>> numbered_;
  std::set<std::string, std::less<>> others_;  ///< Items of any other form.
};

/// Returns one hostlist for these names, without duplicates. Names that do not end with a number come first, sorted. Names that
/// end with a number follow, sorted by prefix, with ranges for their numbers.
std::string compress_hostlist(std::vector<std::string> names);

}  // namespace core
