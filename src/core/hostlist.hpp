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

/// The names a hostlist stands for, in its order, duplicates kept. A range is padded to the width of its first number. A name
/// may have several brackets; the last varies fastest. Errors: kInvalid (brackets, ranges, more than 1,000,000 names).
Result<std::vector<std::string>> expand_hostlist(std::string_view text);

/// Whether a hostlist names it, without writing all the names out: a user's `-w node[0-99999]` is a few bytes, and his thousand
/// jobs are no more than that. One that is malformed may name anything.
bool hostlist_names(std::string_view text, std::string_view name);

/// Names to be looked up in many hostlists.
class HostIndex {
 public:
  /// What `names` speaks of must stay.
  explicit HostIndex(std::vector<std::string_view> names);
  /// Calls `each` for those that the hostlist names, some of them perhaps twice. A range costs what it has of these names, not
  /// what it spans.
  void look_up(std::string_view text, const std::function<void(std::string_view name)>& each) const;

 private:
  struct Entry {
    std::uint64_t number;
    std::string_view name;
    std::size_t digits;
  };
  std::vector<std::string_view> names_;                      ///< Sorted.
  std::map<std::string_view, std::vector<Entry>> numbered_;  ///< By what stands before the digits at the end; by number.
};

/// The names of many hostlists, in which any name can be looked up. A range takes the same room however much it spans, and
/// those that overlap become one.
class HostSet {
 public:
  void add(std::string_view text);
  /// As hostlist_names says of one of the lists.
  [[nodiscard]] bool has(std::string_view name) const;

 private:
  using Ranges = std::map<std::uint64_t, std::uint64_t>;  ///< The first number of each to its last; apart from each other.
  bool any_ = false;                                      ///< One of the lists is malformed.
  std::set<std::string, std::less<>> names_;
  /// By what stands before the brackets, and by the width to which their numbers are padded.
  std::map<std::string, std::map<std::size_t, Ranges>, std::less<>> numbered_;
  std::set<std::string, std::less<>> others_;  ///< Items with more than one range list at their end.
};

/// One hostlist for these names: sorted, without duplicates, the numbers at the ends of names gathered into ranges.
std::string compress_hostlist(std::vector<std::string> names);

}  // namespace core
